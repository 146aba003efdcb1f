#pragma once

/* Addresses of 1, 2, 4, … neighbours in an array of descriptions, from index i on: for the list of
 * all that a collector may emit. */
#define AT1(array, i) &(array)[i]
#define AT2(array, i) AT1(array, i), AT1(array, (i) + 1)
#define AT4(array, i) AT2(array, i), AT2(array, (i) + 2)
#define AT8(array, i) AT4(array, i), AT4(array, (i) + 4)
#define AT16(array, i) AT8(array, i), AT8(array, (i) + 8)
#define AT32(array, i) AT16(array, i), AT16(array, (i) + 16)
#define AT64(array, i) AT32(array, i), AT32(array, (i) + 32)
