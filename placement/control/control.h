#pragma once

/* `waap control CONFIG`: loops from a measure to a knob. Returns what to exit with. */
int control_main(int argc, char **argv);
