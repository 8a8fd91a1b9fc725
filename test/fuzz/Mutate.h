//===- Mutate.h - Damage to bytes and texts -------------------------------===//

#ifndef GTP_TEST_FUZZ_MUTATE_H
#define GTP_TEST_FUZZ_MUTATE_H

#include "Random.h"

#include <string>

namespace gtp::fuzz {

/// One to three changes of bytes: cut, grown, flipped, or a number put where a
/// field of a binary file may be.
void mutateBytes(std::string &bytes, Random &random);

/// Mostly one change of a JSON text: as bytes, or another value, a key gone,
/// doubled or astray, brackets up to far deeper than any stack.
void mutateJson(std::string &text, Random &random);

/// One to three changes of an MLIR text: a token replaced by another of the
/// text or by an extreme, taken away or doubled; lines moved; as bytes.
void mutateMlir(std::string &text, Random &random);

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_MUTATE_H
