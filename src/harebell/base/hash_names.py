"""Names of the algorithms that passwords are hashed with, as definitions and settings have them.

They stand apart from the algorithms (`harebell.auth.passwords`), because every verb of the command
line reads the table of settings and none but the broker hashes anything.
"""

from __future__ import annotations

SHA256 = "rabbit_password_hashing_sha256"
SHA512 = "rabbit_password_hashing_sha512"
MD5 = "rabbit_password_hashing_md5"
SCRYPT = "harebell_password_hashing_scrypt"
