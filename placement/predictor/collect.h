#pragma once

/* `waap place collect --model=FILE.onnx --out=RUNS.csv -- COMMAND...`: measures how long a model's
 * application runs on this node, and appends that to what waap place train takes. Returns the exit
 * code. */
int collect_main(int argc, char **argv);
