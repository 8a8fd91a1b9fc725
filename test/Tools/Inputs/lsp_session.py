"""Speaks the language server protocol to a server, as an editor does, and prints what comes back.

lsp_session.py SERVER GOOD.mlir BAD.mlir
"""
import json
import pathlib
import subprocess
import sys

server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)


def send(method, params, number=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def receive(wanted):
    """The next message for which `wanted` holds."""
    while True:
        length = None
        for line in iter(server.stdout.readline, b"\r\n"):
            if not line:
                sys.exit("error: the server has ended")
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message = json.loads(server.stdout.read(length))
        if wanted(message):
            return message


def open_file(path):
    uri = pathlib.Path(path).resolve().as_uri()
    send("textDocument/didOpen", {"textDocument": {
        "uri": uri, "languageId": "mlir", "version": 1, "text": open(path, encoding="utf-8").read()}})
    found = receive(lambda m: m.get("method") == "textDocument/publishDiagnostics"
                    and m["params"]["uri"] == uri)
    for entry in found["params"]["diagnostics"]:
        print(f"{pathlib.Path(path).name}:{entry['range']['start']['line'] + 1}: {entry['message']}")
    print(f"{pathlib.Path(path).name}: {len(found['params']['diagnostics'])} diagnostics")
    return uri


send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 0)
capabilities = receive(lambda m: m.get("id") == 0)["result"]["capabilities"]
print("hover", capabilities["hoverProvider"], "definition", capabilities["definitionProvider"])
send("initialized", {})
open_file(sys.argv[3])
good = open_file(sys.argv[2])
for line, text in enumerate(open(sys.argv[2], encoding="utf-8").read().splitlines()):
    if "tfm.rms_norm" in text:
        send("textDocument/hover", {"textDocument": {"uri": good}, "position": {
            "line": line, "character": text.index("tfm.rms_norm") + 2}}, 1)
        print(receive(lambda m: m.get("id") == 1)["result"]["contents"]["value"])
        break
send("shutdown", {}, 2)
receive(lambda m: m.get("id") == 2)
send("exit", {})
print("exit code", server.wait(timeout=20))
