//===- TestPasses.cpp - Passes that only tests use ------------------------===//

#include "TestPasses.h"

void gtp::test::registerTestPasses() {
  registerTestTfmInterfaces();
  registerTestTfmStepGradients();
  registerTestTfmUnitGradients();
  registerTestTfmVjp();
}
