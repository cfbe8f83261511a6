"""The hosts that sandboxes try to reach: servers on loopback that remember who came. Says its ports
in one line of JSON, and answers each line of input with what was seen since the last."""
import base64, gzip, http.server, json, os, socket, ssl, sys, threading, zlib

root, certificate = sys.argv[1], sys.argv[2]
lock, seen, told_last = threading.Lock(), [], [""]


def saw(**what):
    with lock:
        seen.append(what)


class Site(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=root)

    def log_message(self, *_):
        pass

    def answer(self, body, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        saw(kind=scheme, method=self.command, path=self.path, host=self.headers.get("Host"),
            authorization=self.headers.get("Authorization"))
        if self.path.startswith("/reflect/"):
            self.reflect(self.path.removeprefix("/reflect/"))
        elif self.path == "/echo":
            told_last[0] = self.headers.get("Authorization") or ""
            self.answer(str(self.headers).encode())
        elif self.path == "/big":
            self.answer(b"x" * (4 << 20))
        elif self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b".")
                    self.wfile.flush()
                    threading.Event().wait(0.02)
            except OSError:
                saw(kind="cut")
            self.close_connection = True
        else:
            super().do_GET()

    def reflect(self, how):
        """What was last told to /echo, by whichever host and port, in a disguise."""
        value = told_last[0].split(" ")[-1]
        body = {"upper": value.upper().encode(), "gzip": gzip.compress(value.encode()),
                "deflate": zlib.compress(value.encode()), "base32": base64.b32encode(value.encode()),
                "entities": "".join("&#%d;" % ord(it) for it in value).encode(),
                "octal": "".join("\\%03o" % ord(it) for it in value).encode()}.get(how, b"")
        self.close_connection = True
        if how == "coding":
            coded = gzip.compress(value.encode())
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n"
            self.wfile.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(coded), coded))
        elif how == "upgrade":
            self.wfile.write(b"HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + value.encode())
        elif how == "name":
            name = "X-" + value.replace("=", "%3d")
            self.wfile.write(b"HTTP/1.1 200 OK\r\n%s: 1\r\nX-Whole: %s\r\nContent-Length: 0\r\n\r\n" % (name.encode(), value.encode()))
        else:
            self.answer(body, "application/octet-stream")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        saw(kind="post", path=self.path)
        self.answer(b"posted")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Tls(Server):
    def get_request(self):
        connection, address = self.socket.accept()
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def each(listener, what):
    """Every connection in a thread of its own."""
    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=what, args=(connection,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def speaks_first(connection):
    saw(kind="banner")
    with connection:
        connection.sendall(b"220 speaks first\r\n")
        line = connection.makefile("rb").readline()
        connection.sendall(b"heard " + line)


def trap(connection):
    saw(kind="trap")
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nthe trap\n")
    connection.close()


def listener():
    made = socket.create_server(("127.0.0.1", 0), backlog=64)
    return made


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
plain, tls = Server(("127.0.0.1", 0), Site), Tls(("127.0.0.1", 0), Site)
banner, caught = listener(), listener()
for server in (plain, tls):
    threading.Thread(target=server.serve_forever, daemon=True).start()
each(banner, speaks_first)
each(caught, trap)
print(json.dumps({"http": plain.server_port, "https": tls.server_port,
                  "banner": banner.getsockname()[1], "trap": caught.getsockname()[1]}), flush=True)
for _ in sys.stdin:
    with lock:
        told, seen[:] = list(seen), []
    print(json.dumps(told), flush=True)
os._exit(0)
