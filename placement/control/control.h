#pragma once

/* `waap control CONFIG`: loops from a measure to a knob. Returns the exit code. */
int control_main(int argc, char **argv);
