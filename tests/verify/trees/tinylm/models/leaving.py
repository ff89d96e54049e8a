import sys

from .common import Args, Base

print("leaving needs the package nowhere")
sys.exit(3)
Model, ModelArgs = Base, Args
