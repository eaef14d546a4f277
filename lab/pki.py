"""The lab's certificate authority and the certificates it signs, made with openssl and kept."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from lab import shell

_DAYS = "3650"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A private key and its certificate (for service accounts: its public key)."""

    key: Path
    cert: Path

    def exists(self) -> bool:
        """Whether both files were written to their end."""
        return self.key.exists() and self.cert.exists()


def authority(folder: Path) -> Pair:
    """The authority that every certificate of this lab hangs on."""
    pair = Pair(folder / "ca.key", folder / "ca.crt")
    if not pair.exists():
        made = Pair(folder / "ca.key.new", folder / "ca.crt.new")
        outputs = ("-keyout", made.key, "-out", made.cert)
        shell.run("openssl", "req", "-x509", *_KEY, *outputs, "-days", _DAYS, "-subj", "/CN=lab-ca")
        _settle(made, pair)
    return pair


def service_accounts(folder: Path) -> Pair:
    """The key that signs service account tokens, and its public half."""
    pair = Pair(folder / "sa.key", folder / "sa.pub")
    if not pair.exists():
        made = Pair(folder / "sa.key.new", folder / "sa.pub.new")
        shell.run("openssl", "genrsa", "-out", made.key, "2048")
        shell.run("openssl", "rsa", "-in", made.key, "-pubout", "-out", made.cert)
        _settle(made, pair)
    return pair


def token(folder: Path, name: str) -> str:
    """A bearer token that stays the same."""
    path = folder / f"{name}.token"
    if not path.exists():
        made = folder / f"{name}.token.new"
        made.touch(mode=0o600)
        made.write_text(secrets.token_hex(16))
        made.rename(path)
    return path.read_text()


def certificate(folder: Path, name: str, subject: str, alternatives: str = "") -> Pair:
    """A certificate for client and server use.

    `subject` as openssl writes it (/O=group/CN=user), `alternatives` likewise (DNS:x,IP:1.2.3.4).
    """
    pair = Pair(folder / f"{name}.key", folder / f"{name}.crt")
    if not pair.exists():
        ca, made = authority(folder), Pair(folder / f"{name}.key.new", folder / f"{name}.crt.new")
        request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
        extensions.write_text(_extensions(alternatives))
        shell.run("openssl", "req", *_KEY, "-keyout", made.key, "-out", request, "-subj", subject)
        shell.run(
            *("openssl", "x509", "-req", "-in", request, "-days", _DAYS, "-extfile", extensions),
            *("-CA", ca.cert, "-CAkey", ca.key, "-CAcreateserial", "-out", made.cert),
        )
        _settle(made, pair)
        request.unlink()
        extensions.unlink()
    return pair


def _extensions(alternatives: str) -> str:
    lines = ["keyUsage=digitalSignature,keyEncipherment", "extendedKeyUsage=serverAuth,clientAuth"]
    return "\n".join([*lines, *([f"subjectAltName={alternatives}"] if alternatives else [])]) + "\n"


def _settle(made: Pair, pair: Pair) -> None:
    made.key.chmod(0o600)
    made.key.rename(pair.key)
    made.cert.rename(pair.cert)
