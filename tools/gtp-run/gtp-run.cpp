//===- gtp-run.cpp - Runs a plan ------------------------------------------===//

#include "gtp-rt/RunTool.h"

int main(int argc, char **argv) {
  return gtp::rt::runTool(argc, argv, gtp::rt::createHostBackend);
}
