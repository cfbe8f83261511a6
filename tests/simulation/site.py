"""Servers on loopback that tell all that they were asked: with bodies, in hexadecimal. Says its ports
in one line of JSON, and answers each line of input with what was seen since the last."""
import http.server, json, os, socket, ssl, sys, threading

certificate, pages = sys.argv[1], json.loads(sys.argv[2])
lock, seen = threading.Lock(), []


def saw(**what):
    with lock:
        seen.append(what)


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        path = self.path.split("?")[0]
        saw(host=self.headers.get("Host", "").rsplit(":", 1)[0], port=self.server.server_port,
            method=self.command, path=path, body=body.hex())
        said = pages.get(path, "ok").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Tls(Server):
    def get_request(self):
        connection, address = self.socket.accept()
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def listen(listener):
    while True:
        connection, _ = listener.accept()
        sent = b""
        while part := connection.recv(4096):
            sent += part
        saw(host="", port=listener.getsockname()[1], method=None, path=None, body=sent.hex())
        connection.close()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
plain, tls = Server(("127.0.0.1", 0), Site), Tls(("127.0.0.1", 0), Site)
raw = socket.create_server(("127.0.0.1", 0), backlog=64)
for server in (plain, tls):
    threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Thread(target=listen, args=(raw,), daemon=True).start()
print(json.dumps({"http": plain.server_port, "https": tls.server_port, "raw": raw.getsockname()[1]}), flush=True)
for _ in sys.stdin:
    with lock:
        told, seen[:] = list(seen), []
    print(json.dumps(told), flush=True)
os._exit(0)
