"""Names of password hash algorithms, as in definitions and settings.

They are separate from the algorithms (`harebell.auth.password_hashes`): every command reads the
table of settings, and only the broker hashes passwords.
"""

from __future__ import annotations

SHA256 = "rabbit_password_hashing_sha256"
SHA512 = "rabbit_password_hashing_sha512"
MD5 = "rabbit_password_hashing_md5"
SCRYPT = "harebell_password_hashing_scrypt"
