#pragma once

/* `waap place train DATA... --out=MODEL`: validates, trains and saves. Returns the exit code. */
int train_main(int argc, char **argv);
