"""Philox4x32-10 (Salmon et al. 2011) and the sample offsets of gtp-run's --data,
written apart from the runtime's C++ so that each checks the other."""

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF


def philox4x32(key, counter):
    """Four 32-bit words; key is a u64, counter a pair of u64."""
    k0, k1 = key & MASK, key >> 32
    c = [counter[0] & MASK, counter[0] >> 32, counter[1] & MASK, counter[1] >> 32]
    for _ in range(10):
        p0, p1 = MULTIPLIERS[0] * c[0], MULTIPLIERS[1] * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c


def sample_offsets(seed, step, samples, choices):
    """Start of each sample of a step: first u64 of Philox(seed, (i, step)) mod choices."""
    offsets = []
    for i in range(samples):
        words = philox4x32(seed, (i, step))
        offsets.append((words[0] | words[1] << 32) % choices)
    return offsets


# Known answers of the authors' library (Random123, kat_vectors).
assert philox4x32(0, (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox4x32(0x299F31D0A4093822, (0x85A308D3243F6A88, 0x0370734413198A2E)) == [
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
