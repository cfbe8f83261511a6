"""Everything that is on any wire of this network namespace, from now on. Its only way out besides
loopback is an interface that nobody answers on, so that whatever leaves is seen leaving."""
import json, socket, struct, subprocess, sys, threading

for words in (["link", "set", "lo", "up"],
              ["link", "add", "out", "type", "veth", "peer", "name", "nobody"],
              ["address", "add", "192.0.2.1/24", "dev", "out"],
              ["link", "set", "nobody", "up"], ["link", "set", "out", "up"],
              ["route", "add", "default", "via", "192.0.2.2"],
              ["neighbour", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:02", "dev", "out"]):
    subprocess.run(["ip", *words], check=True)

ETH_P_ALL = 3
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
wire.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
lock, packets = threading.Lock(), {}


def ports(protocol, payload):
    return list(struct.unpack(">HH", payload[:4])) if protocol in (6, 17) and len(payload) >= 4 else [0, 0]


def named(kind, packet):
    """Interface aside: protocol, from, to."""
    if kind == 0x0800:
        length, protocol = (packet[0] & 15) * 4, packet[9]
        source, target = (socket.inet_ntop(socket.AF_INET, packet[at:at + 4]) for at in (12, 16))
        return [protocol, source, target, *ports(protocol, packet[length:])]
    if kind == 0x86dd:
        source, target = (socket.inet_ntop(socket.AF_INET6, packet[at:at + 16]) for at in (8, 24))
        return [packet[6], source, target, *ports(packet[6], packet[40:])]
    return [kind, "", "", 0, 0]


def listen():
    while True:
        packet, (device, kind, *_) = wire.recvfrom(65536)
        key = json.dumps([device, *named(kind, packet)])
        with lock:
            packets[key] = packets.get(key, 0) + 1


threading.Thread(target=listen, daemon=True).start()
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    # A packet of our own comes after all that were sent before.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.bind(("127.0.0.1", 0))
        last.sendto(b"last", last.getsockname())
        mark = last.getsockname()[1]
    pause = threading.Event()
    while True:
        with lock:
            found = [json.loads(key) for key in packets]
        if any(it[1] == 17 and it[4:] == [mark, mark] for it in found):
            break
        pause.wait(0.01)
    print(json.dumps([it for it in found if not (it[1] == 17 and it[4:] == [mark, mark])]), flush=True)
