"""Parts of a pcapng file (draft-ietf-opsawg-pcapng) that several readers need: the kinds of blocks, and a packet's comment."""

import struct

SECTION, ENHANCED_PACKET, BYTE_ORDER = 0x0A0D0D0A, 6, 0x1A2B3C4D
_COMMENT = 1  # opt_comment, section 3.5


def padded(length: int) -> int:
    """The length of a field that is padded to 32 bits."""
    return (length + 3) // 4 * 4


def comment(options: bytes) -> str:
    """The comment among the options of a block; empty without one."""
    offset = 0
    while offset + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, offset)
        if code == _COMMENT:
            return options[offset + 4 : offset + 4 + length].decode()
        offset += 4 + padded(length)
    return ""
