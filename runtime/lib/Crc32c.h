//===- Crc32c.h - The checksum of TensorBoard's records -------------------===//

#ifndef GTP_RT_LIB_CRC32C_H
#define GTP_RT_LIB_CRC32C_H

#include <cstdint>
#include <string_view>

namespace gtp::rt {

/// CRC-32C (Castagnoli, reflected). Bit by bit: events are a few dozen bytes.
inline uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

/// As records hold it, so that a checksum over checksums says something.
inline uint32_t maskedCrc32c(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

} // namespace gtp::rt

#endif // GTP_RT_LIB_CRC32C_H
