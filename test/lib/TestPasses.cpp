//===- TestPasses.cpp - Passes that only tests use ------------------------===//

#include "TestPasses.h"

void gtp::test::registerTestPasses() {
  registerTestGtpLayout();
  registerTestTfmInterfaces();
  registerTestTfmStepGradients();
  registerTestTfmUnitGradients();
  registerTestTfmVjp();
}
