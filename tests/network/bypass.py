"""What the attacks share. Each prints its name and what came of it, as one line of JSON."""
import errno, json, os, socket, ssl, struct, sys, time


def tell(name, what):
    print(json.dumps({"name": name, "what": what}), flush=True)


def attempt(name, attack):
    try:
        tell(name, attack())
    except ssl.SSLError as error:
        tell(name, f"SSLError {error}")
    except OSError as error:
        tell(name, "OSError " + (errno.errorcode.get(error.errno, "") or str(error)))


def said(connection, request):
    with connection:
        connection.settimeout(20)
        connection.sendall(request)
        text = b""
        while piece := connection.recv(65536):
            text += piece
        return text.decode(errors="replace")


def get(host, port, path="/hello", name=None, more=""):
    request = f"GET {path} HTTP/1.1\r\nHost: {name or host}:{port}\r\nConnection: close\r\n{more}\r\n"
    return said(socket.create_connection((host, port), timeout=20), request.encode())


def question(name, kind=1):
    labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def answered(message):
    """The code, and the last address if there is one."""
    code, count = message[3] & 15, struct.unpack(">H", message[6:8])[0]
    return [code, socket.inet_ntoa(message[-4:]) if count else None]


def udp(server, name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.settimeout(10)
        it.connect((server, 53))
        it.send(question(name))
        return answered(it.recv(4096))


def tcp(server, name):
    with socket.create_connection((server, 53), timeout=10) as it:
        asked = question(name)
        it.sendall(struct.pack(">H", len(asked)) + asked)
        file = it.makefile("rb")
        return answered(file.read(struct.unpack(">H", file.read(2))[0]))
