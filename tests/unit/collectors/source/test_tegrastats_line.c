#include "collectors/source/tegrastats_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "tests/unit/collectors/source/tegrastats_text.h"

#define RAM "RAM 1024/4096MB"
#define RAM_TEXT "ram 1024/4096"

/* Lines of our own in the form of each release. */
static const struct {
    const char *what;
    const char *line;
    const char *text;
} generations[] = {
    {"TX1, 24.x",
     "RAM 301/3854MB (lfb 650x4MB) SWAP 0/0MB (cached 0MB) cpu [3%,0%,off,12%]@1734 EMC 2%@1600 "
     "AVP 7%@115 VDE 0 GR3D 41%@998 throttle 3 EDP limit 1734",
     "ram 301/3854 lfb 650x4 swap 0/0 cached 0 cpu 3%@1734,0%@1734,off,12%@1734 emc 2%@1600 "
     "gpu 41%@998 gpc 998 edp 1734 throttle 3 avp on 7%@115 vde gated @0"},
    {"TX1, 28.1",
     "RAM 2000/3983MB (lfb 3x2MB) cpu [39%,40%,41%,20%]@1734 EMC 30%@1600 APE 25 NVDEC 716 "
     "MSENC 716 GR3D 80%@153",
     "ram 2000/3983 lfb 3x2 cpu 39%@1734,40%@1734,41%@1734,20%@1734 emc 30%@1600 gpu 80%@153 "
     "gpc 153 ape on @25 nvdec0 on @716 nvenc0 on @716"},
    {"Parker with a card, 28.1",
     "RAM 2440/6660MB (lfb 620x4MB) cpu [0%@1994,9%@2035] EMC 0%@1600 GR3D 5%@1275 GR3D_PCI "
     "33%@2607",
     "ram 2440/6660 lfb 620x4 cpu 0%@1994,9%@2035 emc 0%@1600 gpu 5%@1275 gpc 1275 gr3d_pci on "
     "33%@2607"},
    {"TX2, 28.2",
     "RAM 2586/7846MB (lfb 1x1MB) CPU [49%@806,off,off,46%@806] EMC_FREQ 10%@665 GR3D_FREQ "
     "46%@140 APE 150 MTS fg 1% bg 8% BCPU@41C MCPU@41.5C PMIC@100C thermal@40.2C VDD_IN "
     "3177/3200 VDD_CPU 536/540 VDD_WIFI 0/19",
     "ram 2586/7846 lfb 1x1 cpu 49%@806,off,off,46%@806 emc 10%@665 gpu 46%@140 gpc 140 mts 1% 8% "
     "ape on @150 bcpu 41C mcpu 41.5C thermal 40.2C vdd_in 3.177/3.2W vdd_cpu 0.536/0.54W "
     "vdd_wifi 0/0.019W"},
    {"Nano, 32.x with root",
     "RAM 957/3964MB (lfb 528x4MB) SWAP 7/1982MB (cached 1MB) IRAM 0/252kB(lfb 252kB) CPU "
     "[11%@102,1%@204] EMC_FREQ 1%@204 GR3D_FREQ 0%@76 NVENC 716 NVDEC 716 VIC_FREQ 0%@192 APE 25 "
     "PLL@21C CPU@23.5C PMIC@50C POM_5V_IN 998/987 POM_5V_GPU 41/30",
     "ram 957/3964 lfb 528x4 swap 7/1982 cached 1 iram 0/0.24609375 lfb ?x0.24609375 cpu "
     "11%@102,1%@204 emc 1%@204 gpu 0%@76 gpc 76 nvenc0 on @716 nvdec0 on @716 vic on 0%@192 ape "
     "on @25 pll 21C cpu 23.5C pom_5v_in 0.998/0.987W pom_5v_gpu 0.041/0.03W"},
    {"Nano, 32.x without root",
     "RAM 613/3964MB (lfb 634x4MB) CPU [2%@102,1%@102] EMC_FREQ 0% GR3D_FREQ 34% iwlwifi@35C",
     "ram 613/3964 lfb 634x4 cpu 2%@102,1%@102 gpu 34% iwlwifi 35C"},
    {"AGX Xavier, 31 to 32: one word, three meanings",
     "RAM 721/31927MB (lfb 7291x4MB) CPU [2%@1190,off] EMC_FREQ 0%@665 GR3D_FREQ 0%@318 APE 150 "
     "MTS fg 0% bg 0% GPU@37.5C CPU@36C Tboard@37C GPU 96/90 CPU 311/320 SOC 932/932 CV 0/0 "
     "SYS5V 1482/1482",
     "ram 721/31927 lfb 7291x4 cpu 2%@1190,off emc 0%@665 gpu 0%@318 gpc 318 mts 0% 0% ape on @150 "
     "gpu 37.5C cpu 36C tboard 37C gpu 0.096/0.09W cpu 0.311/0.32W soc 0.932/0.932W cv 0/0W sys5v "
     "1.482/1.482W"},
    {"Xavier NX, 35.4",
     "07-09-2024 13:31:31 RAM 3168/6851MB (lfb 54x128kB) SWAP 161/3426MB (cached 0MB) CPU "
     "[23%@1397,17%@1192] EMC_FREQ 2%@204 GR3D_FREQ 9%@[114] VIC_FREQ 115 APE 150 AUX@45C "
     "VDD_IN 2763mW/2846mW VDD_SOC 650mW/711mW",
     "ram 3168/6851 lfb 54x0.125 swap 161/3426 cached 0 cpu 23%@1397,17%@1192 emc 2%@204 gpu "
     "9%@114 "
     "gpc 114 vic on @115 ape on @150 aux 45C vdd_in 2.763/2.846W vdd_soc 0.65/0.711W"},
    {"AGX Orin, 34 to 35.3: two clusters apart, gated sensors, unconnected rails",
     "10-16-2023 10:59:22 RAM 1205/30623MB (lfb 6429x4MB) CPU [0%@729,3%@730] EMC_FREQ 0%@204 "
     "GR3D_FREQ 7%@114 GR3D2_FREQ 7%@305 NVJPG1 729 VIC_FREQ 729 APE 233 CV0@-256C CPU@43.5C "
     "GPU@-256C Tdiode@32.25C NC 0mW/0mW VDD_CPU_CV 798mW/799mW NC 0mW/0mW",
     "ram 1205/30623 lfb 6429x4 cpu 0%@729,3%@730 emc 0%@204 gpu 7%@305 gpc 114,305 nvjpg1 on @729 "
     "vic on @729 ape on @233 cpu 43.5C tdiode 32.25C vdd_cpu_cv 0.798/0.799W"},
    {"Orin NX, 35.2 without root: a second cluster that is not there",
     "RAM 998/15389MB (lfb 3313x4MB) CPU [4%@883] EMC_FREQ 0% GR3D_FREQ 12% GR3D2_FREQ 12%@0 "
     "tj@57.468C",
     "ram 998/15389 lfb 3313x4 cpu 4%@883 gpu 12% tj 57.468C"},
    {"AGX Orin, 36.x: runs of blanks, engines off",
     "RAM 29114/30697MB (lfb 3x4MB)    SWAP 15/15348MB (cached 1MB) CPU [3%@729,100%@2201] "
     "EMC_FREQ "
     "1%@2133 GR3D_FREQ 0%@[305,305] NVENC      off  NVDEC    40%@115 NVJPG1    off  OFA    off   "
     "NVDLA0 12%@1600    PVA0_FREQ off   APE     174   cpu@53.062C soc2@48.25C   VDD_CPU_CV "
     "4405mW/4405mW",
     "ram 29114/30697 lfb 3x4 swap 15/15348 cached 1 cpu 3%@729,100%@2201 emc 1%@2133 gpu 0%@305 "
     "gpc 305,305 nvenc0 gated nvdec0 on 40%@115 nvjpg1 gated ofa gated nvdla0 on 12%@1600 pva0 "
     "gated ape on @174 cpu 53.062C soc2 48.25C vdd_cpu_cv 4.405/4.405W"},
    {"AGX Orin, 39: three values",
     "07-31-2026 14:58:05 RAM 4714/62878MB (lfb 7x4MB) CPU [78%@1728,off] EMC_FREQ 2%@2133 "
     "GR3D_FREQ 0%@[0,0] NVENC0 off VIC 37%@115 cpu@50.718C/51.5C VDD_GPU_SOC "
     "2265mW/2300mW/2400mW",
     "ram 4714/62878 lfb 7x4 cpu 78%@1728,off emc 2%@2133 gpu 0%@0 gpc 0,0 nvenc0 gated vic on "
     "37%@115 cpu 50.718C vdd_gpu_soc 2.265/2.3W"},
    {"Thor, 38: no load of the GPU",
     "04-21-2026 15:50:52 RAM 105265/125772MB (lfb 34x4MB) CPU [0%@972,8%@2601] EMC_FREQ 0%@2750 "
     "GR3D_FREQ @[314,315,314] NVENC0_FREQ @314 NVDEC1_FREQ @0 VIC off OFA_FREQ @315 PVA0_FREQ off "
     "APE 300 soc012@37.468C VDD_GPU -392mW/-391mW VIN 19780mW/19780mW",
     "ram 105265/125772 lfb 34x4 cpu 0%@972,8%@2601 emc 0%@2750 gpu @315 gpc 314,315,314 nvenc0 on "
     "@314 nvdec1 gated @0 vic gated ofa on @315 pva0 gated ape on @300 soc012 37.468C vdd_gpu "
     "-0.392/-0.391W vin 19.78/19.78W"},
};

/* What damage, future releases and odd boards do to a line; NULL: no record. */
static const struct {
    const char *line;
    const char *text;
} odd_lines[] = {
    {RAM, RAM_TEXT},
    {RAM "\r\n", RAM_TEXT},
    {"  \t" RAM " ", RAM_TEXT},
    {"17 " RAM, RAM_TEXT},
    {"17 01-02-2026 03:04:05 " RAM, RAM_TEXT},
    {RAM " (lfb 3x512B)", RAM_TEXT " lfb 3x0.00048828125"},
    {RAM " (lfb 1x1GB)", RAM_TEXT " lfb 1x1024"},
    {RAM "(lfb 3x4MB)", RAM_TEXT " lfb 3x4"},
    {RAM "(lfb 3xMB)", RAM_TEXT " unknown 1"},
    {RAM " (lfb 3x4MB", RAM_TEXT " unknown 2"},
    {RAM " (lfb 3x4MB SWAP 1/2MB (cached 1MB)", RAM_TEXT " swap 1/2 cached 1 unknown 2"},
    {RAM " Carveout 1/2MB (lfb 512kB)", RAM_TEXT " carveout 1/2 lfb ?x0.5"},
    {RAM " SWAP 1/2MB (cached oneMB)", RAM_TEXT " swap 1/2 unknown 1"},
    {RAM " CPU []", RAM_TEXT},
    {RAM " CPU [2%@972,...]", RAM_TEXT " cpu 2%@972,? unknown 1"},
    {RAM " CPU [1%@2,x%@3,4%@,5%@6]", RAM_TEXT " cpu 1%@2,?,?,5%@6 unknown 2"},
    {RAM " CPU [7%,off]", RAM_TEXT " cpu 7%,off"},
    {RAM " CPU [7%]@x APE 25", RAM_TEXT " ape on @25 unknown 2"},
    {RAM " CPU [1%@2,3%@4 EMC_FREQ 5%@1600", RAM_TEXT " emc 5%@1600 unknown 2"},
    {RAM " CPU 466/466", RAM_TEXT " cpu 0.466/0.466W"},
    {RAM " CPU", RAM_TEXT " unknown 1"},
    {RAM " EMC_FREQ @4266", RAM_TEXT " emc @4266"},
    {RAM " EMC_FREQ 3%@0", RAM_TEXT " emc @0"},
    {RAM " GR3D_FREQ 61%@[0]", RAM_TEXT " gpu 61%@0 gpc 0"},
    {RAM " GR3D_FREQ 0%@[305,305]", RAM_TEXT " gpu 0%@305 gpc 305,305"},
    {RAM " GR3D_FREQ @[0,0,0]", RAM_TEXT " gpu @0 gpc 0,0,0"},
    {RAM " GR3D_FREQ 87%@[1574,1574,1574]", RAM_TEXT " gpu 87%@1574 gpc 1574,1574,1574"},
    {RAM " GR3D_FREQ 8%@[]", RAM_TEXT " gpu 8%"},
    {RAM " GR3D_FREQ 8%@[1,,3]", RAM_TEXT " gpu 8%@3 gpc 1,?,3 unknown 1"},
    {RAM " GR3D_FREQ 8%@[1 APE 25", RAM_TEXT " ape on @25 unknown 2"},
    {RAM " PVA0_FREQ [10%,30%]@1215", RAM_TEXT " pva0 on 20%@1215"},
    {RAM " PVA0_FREQ []@1215", RAM_TEXT " unknown 2"},
    {RAM " NVDLA0_FREQ @1600 NVENC 79%", RAM_TEXT " nvdla0 on @1600 nvenc0 ? 79%"},
    {RAM " NVENC 5%@1 MSENC 7", RAM_TEXT " nvenc0 on 5%@1"},
    {RAM " MTS fg 1% bg x%", RAM_TEXT " mts 1% ? unknown 1"},
    {RAM " MTS bg 1% fg 2%", RAM_TEXT " bg ? 1% fg ? 2% unknown 1"},
    {RAM " SYS5V 2053/205", RAM_TEXT " sys5v 2.053/0.205W"},
    {RAM " A 598mW/598 B 598/598mW", RAM_TEXT " a 0.598/0.598W b 0.598/0.598W"},
    {RAM " A 5W/4.5W B 5uW/6uW/7uW", RAM_TEXT " a 5/4.5W b 5e-06/6e-06W"},
    {RAM " A 598mW B 598", RAM_TEXT " b on @598 a 0.598/?W"},
    {RAM " A 1/2/3/4 B 1/ C /2", RAM_TEXT " unknown 6"},
    {RAM " A 1kW/2kW B --1/2 C 1e3/4", RAM_TEXT " unknown 6"},
    {RAM " VDD_IN 1/1 vdd_in 2/2", RAM_TEXT " vdd_in 0.001/0.001W"},
    {RAM " cpu@1C CPU@2C", RAM_TEXT " cpu 1C"},
    {RAM " cpu@-12.5C a@-255.9C b@-256.5C", RAM_TEXT " cpu -12.5C a -255.9C"},
    {RAM " a@1C/2C b@1C/ c@1C/2 d@1C/2C/3C e@C f@.5C g@5.C @5C", RAM_TEXT " a 1C unknown 7"},
    {RAM " h@nanC i@infC j@0x1C k@+1C l@1e2C m@@4C", RAM_TEXT " unknown 6"},
    {RAM " FUTURE_THING {a:b} APE 25", RAM_TEXT " ape on @25 unknown 2"},
    {RAM " 12 34 @ % [ ] / ()", RAM_TEXT " unknown 8"},
    {RAM " APE 999999999999999 VIC 1000000000000000",
     RAM_TEXT " ape on @999999999999999 unknown 2"},
    {RAM " a_name_longer_than_any_that_nvidia_prints 25", RAM_TEXT " unknown 2"},
    {RAM " G\xc3\xa4ste@4C APE 25", RAM_TEXT " ape on @25 unknown 1"},
    {"", NULL},
    {"\n", NULL},
    {"WARNING: not invoking as root", NULL},
    {"17", NULL},
    {"17 18 " RAM, NULL},
    {"RAM", NULL},
    {"RAM is full", NULL},
    {"RAM 1024/4096", NULL},
    {"RAM 1024/MB", NULL},
    {"RAM -1/4096MB", NULL},
    {"RAM /4096MB", NULL},
    {"ram 1024/4096MB", NULL},
    {"01-02-2026 " RAM, NULL},
    {"1-2-2026 03:04:05 " RAM, NULL},
    {"01-02-2026 03:04 " RAM, NULL},
    {"[0%@1190,1%@1190] EMC_FREQ 0%@1331", NULL},
    {"CPU [0%@1190] " RAM, NULL},
    {RAM " CPU [1%@2] " RAM " CPU [1%@2]", NULL},
    {RAM " CPU [1%@2] SYS5V 1/1" RAM " CPU [1%@2]", NULL},
};

static void check(const char *what, const char *line, size_t len, const char *text) {
    struct tegrastats_line parsed;
    struct buf described CLEANUP_BUF = {0};
    int r = tegrastats_line_parse(line, len, &parsed);
    TEST_ASSERT_EQUAL_INT_MESSAGE(text != NULL ? 0 : -EINVAL, r, what);
    if (r == 0) {
        tegrastats_text(&parsed, &described);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(text, buf_str(&described), what);
    }
}

static void test_generations(void) {
    for (size_t i = 0; i < ARRAY_LEN(generations); i++) {
        check(generations[i].what, generations[i].line, strlen(generations[i].line),
              generations[i].text);
    }
}

static void test_odd_lines(void) {
    for (size_t i = 0; i < ARRAY_LEN(odd_lines); i++) {
        check(odd_lines[i].line, odd_lines[i].line, strlen(odd_lines[i].line), odd_lines[i].text);
    }
}

static void test_a_nul_costs_its_token(void) {
    static const char line[] = RAM " APE\0 25 VIC 2\0005 OFA off";
    check("NUL", line, sizeof(line) - 1, RAM_TEXT " ofa gated unknown 4");
}

/* Whatever is cut off, what stands before the cut is read as before. */
static void test_every_truncation(void) {
    for (size_t i = 0; i < ARRAY_LEN(generations); i++) {
        struct tegrastats_line whole, part;
        const char *line = generations[i].line;
        tegrastats_line_parse(line, strlen(line), &whole);
        for (size_t len = 0; len < strlen(line); len++) {
            char *exact CLEANUP_FREE = malloc(len + 1); /* so that reading behind it is seen */
            memcpy(exact, line, len);
            if (tegrastats_line_parse(exact, len, &part) < 0) {
                continue;
            }
            TEST_ASSERT_EQUAL_DOUBLE(whole.ram.total_bytes, part.ram.total_bytes);
            TEST_ASSERT_LESS_OR_EQUAL(2, part.n_unknown);
            for (size_t zone = 0; zone < part.n_zones; zone++) {
                TEST_ASSERT_EQUAL_STRING(whole.zones[zone].name, part.zones[zone].name);
                TEST_ASSERT_EQUAL_DOUBLE(whole.zones[zone].celsius, part.zones[zone].celsius);
            }
        }
    }
}

static void test_more_than_there_is_room_for(void) {
    struct buf line CLEANUP_BUF = {0};
    struct tegrastats_line parsed;
    buf_add_str(&line, RAM " GR3D_FREQ 1%@[1");
    for (int i = 0; i < TEGRASTATS_MAX_GPCS; i++) {
        buf_add_str(&line, ",2");
    }
    buf_add_str(&line, "] CPU [1%@1");
    for (int i = 0; i < TEGRASTATS_MAX_CPUS; i++) {
        buf_add_str(&line, ",2%@2");
    }
    buf_add_str(&line, "]");
    for (int i = 0; i <= TEGRASTATS_MAX_ZONES; i++) {
        buf_printf(&line, " z%d@%dC r%d %d/1 e%d off", i, i, i, i, i);
    }
    TEST_ASSERT_EQUAL_INT(0, tegrastats_line_parse(line.data, line.len, &parsed));
    TEST_ASSERT_EQUAL_size_t(TEGRASTATS_MAX_GPCS, parsed.n_gpcs);
    TEST_ASSERT_EQUAL_size_t(TEGRASTATS_MAX_CPUS, parsed.n_cpus);
    TEST_ASSERT_EQUAL_size_t(TEGRASTATS_MAX_ZONES, parsed.n_zones);
    TEST_ASSERT_EQUAL_size_t(TEGRASTATS_MAX_RAILS, parsed.n_rails);
    TEST_ASSERT_EQUAL_size_t(TEGRASTATS_MAX_ENGINES, parsed.n_engines);
    TEST_ASSERT_EQUAL_size_t(1 + 1 + 1 + 2 + 2, parsed.n_unknown);
}
