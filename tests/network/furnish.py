"""A repository and an index of packages, to be served as files."""
import base64, hashlib, os, subprocess, sys, tempfile, zipfile

root = sys.argv[1]


def git(*words):
    subprocess.run(["/usr/bin/git", *words], check=True, stdout=subprocess.DEVNULL)


with tempfile.TemporaryDirectory() as work:
    git("init", "-q", "-b", "main", work)
    with open(os.path.join(work, "hello"), "w") as file:
        file.write("hello from the site\n")
    git("-C", work, "add", "hello")
    git("-C", work, "commit", "-q", "-m", "hello")
    bare = os.path.join(root, "hello.git")
    git("clone", "-q", "--bare", work, bare)
    git("-C", bare, "update-server-info")

wheel = "hello_site-1.0-py3-none-any.whl"
place = os.path.join(root, "simple", "hello-site")
os.makedirs(place)
files = {
    "hello_site.py": b"print('hello from the site')\n",
    "hello_site-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: hello-site\nVersion: 1.0\n",
    "hello_site-1.0.dist-info/WHEEL":
        b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files["hello_site-1.0.dist-info/RECORD"] = (record + "hello_site-1.0.dist-info/RECORD,,\n").encode()
with zipfile.ZipFile(os.path.join(place, wheel), "w") as archive:
    for name, content in files.items():
        archive.writestr(name, content)
with open(os.path.join(place, "index.html"), "w") as file:
    file.write(f'<!DOCTYPE html><a href="{wheel}">{wheel}</a>')
