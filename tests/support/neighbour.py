"""A neighbour of the sandboxes: forks, allocates and writes all the while, and counts what fails."""
import json, os, sys, threading, time

place = sys.argv[1]
work, errors, slowest = 0, [], 0.0
stop = threading.Event()


def turn():
    global work
    child = os.fork()
    if child == 0:
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        errors.append("child")
    block = bytearray(4 << 20)
    block[::4096] = b"\1" * len(block[::4096])
    with open(place, "wb") as file:
        file.write(block[: 256 << 10])
        file.flush()
        os.fsync(file.fileno())
    work += 1


def loop():
    global slowest
    while not stop.is_set():
        began = time.monotonic()
        try:
            turn()
        except Exception as error:
            errors.append(repr(error))
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.01)


thread = threading.Thread(target=loop)
thread.start()
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
stop.set()
thread.join()
print(json.dumps({"work": work, "errors": errors[:5], "slowest_ms": int(slowest * 1000)}), flush=True)
