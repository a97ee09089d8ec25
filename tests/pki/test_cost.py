import subprocess
import sys


def test_describing_certificates_does_not_load_cryptography() -> None:
    # A command's help and the list of phases come from this description; loading cryptography costs them 85 ms.
    code = "import garboard.pki, sys; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
