//===- Rope.cpp - Rotary frequencies of a config --------------------------===//
//
// The formulas are those of transformers' modeling_rope_utils, in float32 as
// there, so that angles agree in their last bits.
//
//===----------------------------------------------------------------------===//

#include "Rope.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using llvm::StringRef;
using llvm::Twine;

/// 1 / theta^(2i / turning), rounded to float32 after each operation. The power
/// is taken in float64 and rounded: no worse than any float32 library's.
static llvm::SmallVector<float> plainFrequencies(int64_t turning,
                                                 double theta) {
  llvm::SmallVector<float> result;
  for (int64_t i = 0; i < turning; i += 2) {
    float exponent = static_cast<float>(i) / static_cast<float>(turning);
    float power = static_cast<float>(
        std::pow(static_cast<double>(static_cast<float>(theta)), exponent));
    result.push_back(1.0f / power);
  }
  return result;
}

/// Meta's scaling of Llama 3.1: long wavelengths are divided by `factor`, short
/// ones stay, and those between are interpolated.
static void scaleLlama3(const ConfigObject &scaling,
                        llvm::MutableArrayRef<float> frequencies) {
  auto required = [&](StringRef key) {
    if (!scaling.has(key))
      scaling.error(key, "'" + Twine(scaling.path(key)) +
                             "' is missing; rope type 'llama3' needs it");
    return static_cast<float>(scaling.number(key, 0.0).value_or(1.0));
  };
  float factor = required("factor");
  float lowFactor = required("low_freq_factor");
  float highFactor = required("high_freq_factor");
  float oldContext = required("original_max_position_embeddings");
  if (scaling.reader().failed())
    return;
  if (!(highFactor > lowFactor)) {
    scaling.error("high_freq_factor",
                  "'" + Twine(scaling.path("high_freq_factor")) +
                      "' must be larger than low_freq_factor");
    return;
  }
  float lowWavelength = oldContext / lowFactor;
  float highWavelength = oldContext / highFactor;
  constexpr float kTwoPi = 6.283185307179586f;
  for (float &frequency : frequencies) {
    float wavelength = kTwoPi / frequency;
    if (wavelength > lowWavelength) {
      frequency /= factor;
    } else if (!(wavelength < highWavelength)) {
      float smooth =
          (oldContext / wavelength - lowFactor) / (highFactor - lowFactor);
      frequency = (1.0f - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

/// The object that holds the scaling: `rope_parameters` since transformers 5,
/// `rope_scaling` before.
static std::optional<ConfigObject> scalingObject(const ConfigObject &config) {
  if (config.has("rope_scaling") && config.has("rope_parameters"))
    config.error("rope_scaling",
                 "'rope_scaling' and 'rope_parameters' are both "
                 "given; keep the latter");
  std::optional<ConfigObject> scaling = config.object("rope_scaling");
  return scaling ? scaling : config.object("rope_parameters");
}

/// The type of the scaling; `type` is what `rope_type` was called first.
static StringRef scalingType(const ConfigObject &scaling) {
  StringRef old = scaling.string("type").value_or("");
  StringRef type = scaling.string("rope_type").value_or(old);
  if (!old.empty() && old != type)
    scaling.error("type", "'" + Twine(scaling.path("type")) + "' is \"" + old +
                              "\" but rope_type is \"" + type + "\"; keep one");
  return type.empty() ? StringRef("default") : type;
}

static double readTheta(const ConfigObject &config,
                        const std::optional<ConfigObject> &scaling,
                        const RopeKeys &keys) {
  std::optional<double> outer = config.number(keys.thetaKey, 0.0);
  std::optional<double> inner =
      scaling ? scaling->number("rope_theta", 0.0) : std::nullopt;
  if (outer && inner && *outer != *inner)
    scaling->error("rope_theta", "'" + Twine(scaling->path("rope_theta")) +
                                     "' and '" + keys.thetaKey +
                                     "' differ; keep one");
  if (inner)
    return *inner;
  return outer ? *outer : config.numberOr(keys.thetaKey, keys.theta, 0.0);
}

/// Features of a head that turn: all but where the family knows a part.
static int64_t readTurning(const ConfigObject &config,
                           const std::optional<ConfigObject> &scaling,
                           int64_t headDim, const RopeKeys &keys) {
  constexpr StringRef kFactor = "partial_rotary_factor";
  std::optional<double> inner =
      scaling ? scaling->number(kFactor, 0.0) : std::nullopt;
  if (keys.partKey.empty()) {
    for (auto [object, part] :
         {std::pair(scaling ? &*scaling : &config, inner),
          std::pair(&config, config.number(kFactor, 0.0))})
      if (part && *part != 1.0)
        object->error(kFactor, "'" + Twine(object->path(kFactor)) +
                                   "' is not supported unless it is 1");
    return headDim;
  }
  const ConfigObject &object = inner ? *scaling : config;
  StringRef key = inner ? kFactor : StringRef(keys.partKey);
  // That all of a head turns goes without saying.
  double part = inner              ? *inner
                : keys.part == 1.0 ? config.number(key, 0.0).value_or(1.0)
                                   : config.numberOr(key, keys.part, 0.0);
  auto turning =
      static_cast<int64_t>(static_cast<double>(headDim) * std::min(part, 1.0));
  if (part > 1.0 || turning < 2 || turning % 2 != 0)
    object.error(key, "'" + Twine(object.path(key)) + "' turns " +
                          Twine(turning) + " features of a head of " +
                          Twine(headDim) +
                          "; rotary embedding needs pairs, at least one and "
                          "at most all");
  return turning;
}

llvm::SmallVector<double> gtp::readRopeFrequencies(const ConfigObject &config,
                                                   int64_t headDim,
                                                   const RopeKeys &keys) {
  std::optional<ConfigObject> scaling = scalingObject(config);
  config.refuseUnless("rope_interleaved", false);
  int64_t turning = readTurning(config, scaling, headDim, keys);
  double theta = readTheta(config, scaling, keys);
  StringRef type = scaling ? scalingType(*scaling) : "default";
  if (config.reader().failed())
    return {};

  llvm::SmallVector<float> frequencies = plainFrequencies(turning, theta);
  if (type == "llama3") {
    scaleLlama3(*scaling, frequencies);
  } else if (type == "linear") {
    if (!scaling->has("factor"))
      scaling->error("factor", "'" + Twine(scaling->path("factor")) +
                                   "' is missing; rope type 'linear' needs it");
    float factor =
        static_cast<float>(scaling->number("factor", 0.0).value_or(1.0));
    for (float &frequency : frequencies)
      frequency /= factor;
  } else if (type != "default") {
    scaling->error(
        scaling->has("rope_type") ? "rope_type" : "type",
        "rope type '" + Twine(type) +
            "' is not supported; supported: default, linear, llama3");
  }
  // A theta or factor beyond float32 leaves no usable angle.
  for (float frequency : frequencies)
    if (!std::isfinite(frequency)) {
      config.error(keys.thetaKey,
                   "the rotary frequencies of these settings are "
                   "not finite in float32");
      break;
    }
  return llvm::SmallVector<double>(frequencies.begin(), frequencies.end());
}
