#pragma once

#include "prom.h"
