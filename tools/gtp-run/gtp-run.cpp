//===- gtp-run.cpp - Runs a plan ------------------------------------------===//

#include "gtp-rt/Main.h"

int main(int argc, char **argv) { return gtp::rt::runMain(argc, argv); }
