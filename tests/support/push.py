"""Puts an image of one file into a registry: `push.py HOST:PORT NAME TAG`."""
import gzip, hashlib, io, json, platform, sys, tarfile, urllib.request

place, name, tag = sys.argv[1:]
base = f"http://{place}/v2/{name}"


def send(method, url, body=b"", kind="application/octet-stream"):
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30)


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def blob(content, kind):
    at = send("POST", f"{base}/blobs/uploads/").headers["Location"]
    at = at if at.startswith("http") else f"http://{place}{at}"
    send("PUT", f"{at}{'&' if '?' in at else '?'}digest={digest(content)}", content)
    return {"mediaType": kind, "digest": digest(content), "size": len(content)}


layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as archive:
    entry = tarfile.TarInfo("hello")
    text = b"hello from the image\n"
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text))
layer = layer.getvalue()
machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
config = json.dumps({"os": "linux", "architecture": machine, "config": {},
                     "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
oci = "application/vnd.oci.image"
manifest = json.dumps({
    "schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json",
    "config": blob(config, f"{oci}.config.v1+json"),
    "layers": [blob(gzip.compress(layer), f"{oci}.layer.v1.tar+gzip")],
}).encode()
send("PUT", f"{base}/manifests/{tag}", manifest, f"{oci}.manifest.v1+json")
