//===- TestPasses.cpp - Passes that only tests use ------------------------===//

#include "TestPasses.h"

void gtp::test::registerTestPasses() {
  registerTestGtpLayout();
  registerTestPlanEmit();
  registerTestTfmInterfaces();
  registerTestTfmStepGradients();
  registerTestTfmUnitGradients();
  registerTestTfmVjp();
}
