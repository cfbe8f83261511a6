"""Gives a host a secret to say back, from itself and from others, and looks for it in what comes. Says
where it was found."""
import base64, html, gzip, os, re, socket, ssl, zlib

tls, plain = int("TLS_PORT"), int("HTTP_PORT")


def ask(host, port, path, more=""):
    raw = socket.create_connection((host, port), 20)
    if port == tls:
        raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
    raw.settimeout(20)
    got = b""
    try:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{more}\r\n".encode())
        while piece := raw.recv(65536):
            got += piece
    except OSError:
        pass
    return got


def readings(got):
    yield got
    for begin in (at for at in range(len(got)) if got[at:at + 2] in (b"\x1f\x8b", b"x\x9c")):
        for bits in (15, 31):
            try:
                yield zlib.decompressobj(bits).decompress(got[begin:])
            except zlib.error:
                pass
    for word in re.findall(rb"[A-Z2-7]{16,}=*", got):
        try:
            yield base64.b32decode(word + b"=" * (-len(word) % 8))
        except ValueError:
            pass
    yield html.unescape(got.decode("latin-1")).encode("latin-1", "replace")
    yield re.sub(rb"\\(\d{3})", lambda it: bytes([int(it[1], 8)]), got)


# Its beginning is enough to know it by, and says nothing.
needle = b"cnry-7f3k"
credentials = f"Authorization: Bearer {os.environ['CANARY']}\r\nConnection: close\r\n"
assert b"[secret" in ask("ok.test", tls, "/echo", credentials)
for how in ("upper", "gzip", "deflate", "base32", "entities", "octal", "coding", "name", "upgrade"):
    for host, port in (("ok.test", tls), ("also.test", tls), ("ok.test", plain)):
        more = "Connection: Upgrade\r\nUpgrade: websocket\r\n" if how == "upgrade" else "Connection: close\r\n"
        got = ask(host, port, f"/reflect/{how}", more)
        # What is cut may be cut before anything of it came.
        assert got.startswith(b"HTTP/1.1 ") or how in ("gzip", "deflate"), (how, got)
        if any(needle in it.lower() for it in readings(got)):
            print("FOUND", how, host, port)
print("done")
