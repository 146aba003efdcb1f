#include "prom.h"
