#pragma once

/* `waap model FILE.onnx [--json]`: prints the characteristics of a model. Returns the exit code. */
int model_main(int argc, char **argv);
