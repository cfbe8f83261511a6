//! What somebody sends who means no good, or does not know better.

use serde_json::{Value, json};

use crate::wire::{request, tool_call};

/// Bytes that are no message, or no good one: what they are, and what they are made of.
pub(crate) fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let made = |value: Value| value.to_string().into_bytes();
    let with_id = |id: Value| made(request(id, "tools/list", json!({})));
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{open}{close}}}"#)
    };
    let mut versioned = request(1, "tools/list", json!({}));
    versioned["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    let mut unversioned = request(1, "tools/list", json!({}));
    unversioned["params"]["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": 7});
    vec![
        ("nothing", text("")),
        ("words", text("GET / HTTP/1.1")),
        ("half a message", text(r#"{"jsonrpc":"2.0","id":1,"#)),
        ("an empty object", text("{}")),
        ("an empty list", text("[]")),
        ("null", text("null")),
        ("a number", text("42")),
        ("a string", text(r#""tools/list""#)),
        (
            "two messages at once",
            made(json!([
                request(1, "tools/list", json!({})),
                request(2, "ping", json!({}))
            ])),
        ),
        (
            "no version of JSON-RPC",
            text(r#"{"id":1,"method":"tools/list"}"#),
        ),
        (
            "another version of JSON-RPC",
            text(r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#),
        ),
        (
            "a method that is a number",
            text(r#"{"jsonrpc":"2.0","id":1,"method":7}"#),
        ),
        ("a method that is empty", made(request(1, "", json!({})))),
        (
            "a method that nobody knows",
            made(request(1, "tools/destroy", json!({}))),
        ),
        (
            "a method in capitals",
            made(request(1, "TOOLS/LIST", json!({}))),
        ),
        (
            "a method with a line break",
            made(request(1, "tools/list\r\nX-Evil: 1", json!({}))),
        ),
        (
            "parameters that are a list",
            text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#),
        ),
        (
            "parameters that are a string",
            text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#),
        ),
        ("an id that is an object", with_id(json!({"a": 1}))),
        ("an id that is a list", with_id(json!([1]))),
        ("an id that is true", with_id(json!(true))),
        ("an id with a fraction", with_id(json!(1.5))),
        ("an id that is null", with_id(Value::Null)),
        (
            "an answer to nothing",
            text(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#),
        ),
        (
            "an error to nothing",
            text(r#"{"jsonrpc":"2.0","id":99,"error":{"code":-1,"message":"no"}}"#),
        ),
        (
            "a result and a method",
            text(r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/list"}"#),
        ),
        ("deep nesting", nested(10_000).into_bytes()),
        ("deeper nesting", nested(200_000).into_bytes()),
        (
            "bytes that are no text",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(),
        ),
        (
            "half a surrogate",
            text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#),
        ),
        (
            "a number without end",
            text(r#"{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}"#),
        ),
        (
            "NUL bytes",
            b"{\"jsonrpc\":\"2.0\",\0\"id\":1,\"method\":\"tools/list\"}".to_vec(),
        ),
        (
            "a call without a name",
            made(request(1, "tools/call", json!({"arguments": {}}))),
        ),
        (
            "a call of a number",
            made(request(1, "tools/call", json!({"name": 7}))),
        ),
        (
            "arguments that are a list",
            made(request(
                1,
                "tools/call",
                json!({"name": "run_code", "arguments": [1]}),
            )),
        ),
        (
            "arguments that are a string",
            made(request(
                1,
                "tools/call",
                json!({"name": "run_code", "arguments": "x"}),
            )),
        ),
        (
            "a tool that nobody knows",
            made(tool_call(1, "rm_rf", json!({}))),
        ),
        (
            "a tool with a path for a name",
            made(tool_call(1, "../../run_code", json!({}))),
        ),
        (
            "a skill that is a path",
            made(tool_call(1, "skill.../../etc", json!({}))),
        ),
        (
            "a tool with a very long name",
            made(tool_call(1, &"x".repeat(100_000), json!({}))),
        ),
        ("a revision that never was", made(versioned)),
        ("no revision at all", made(unversioned)),
        (
            "a state that nobody sealed",
            made(request(
                1,
                "tools/call",
                json!({
                    "name": "run_code",
                    "arguments": {"language": "python", "code": "1"},
                    "requestState": "rs1.e30.AAAA",
                    "inputResponses": {"decision": {"action": "accept", "content": {"decision": "allow"}}},
                }),
            )),
        ),
        (
            "a resource outside",
            made(request(
                1,
                "resources/read",
                json!({"uri": "file:///etc/passwd"}),
            )),
        ),
        (
            "a resource above",
            made(request(
                1,
                "resources/read",
                json!({"uri": "glovebox://files/default/../../../../etc/passwd"}),
            )),
        ),
        (
            "a resource above, hidden",
            made(request(
                1,
                "resources/read",
                json!({"uri": "glovebox://files/default/%2e%2e%2f%2e%2e%2fetc%2fpasswd"}),
            )),
        ),
        (
            "a resource of no exec",
            made(request(
                1,
                "resources/read",
                json!({"uri": "glovebox://execs/..%2f..%2ftokens/stdout"}),
            )),
        ),
        (
            "a resource that is a number",
            made(request(1, "resources/read", json!({"uri": 7}))),
        ),
    ]
}

/// Calls of tools that are there, with arguments that must not do anything.
pub(crate) fn calls() -> Vec<(&'static str, Value)> {
    let python = |more: Value| {
        let mut arguments = json!({"language": "python", "code": "open('started', 'w')"});
        for (key, value) in more.as_object().into_iter().flatten() {
            arguments[key.as_str()] = value.clone();
        }
        ("run_code", arguments)
    };
    let mut calls = vec![
        python(json!({"unknown": 1})),
        python(json!({"language": "perl"})),
        python(json!({"code": 7})),
        python(json!({"code": null})),
        python(json!({"timeout": "forever"})),
        python(json!({"timeout": "-1s"})),
        python(json!({"timeout": 5})),
        python(json!({"memory": "lots"})),
        python(json!({"cwd": "../../.."})),
        python(json!({"cwd": "/etc"})),
        python(json!({"cwd": "a\u{0}b"})),
        python(json!({"env": {"A=B": "1"}})),
        python(json!({"env": {"A": "x\u{0}y"}})),
        python(json!({"env": ["A"]})),
        python(json!({"allow_net": ["not a host at all:99999"]})),
        python(json!({"allow_net": "everything"})),
        python(json!({"project": "../other"})),
        python(json!({"project": ""})),
        python(json!({"project": "a/b"})),
        python(json!({"project": "x\u{0}"})),
        python(json!({"project": "x".repeat(10_000)})),
        python(json!({"sandbox": "../x"})),
        python(json!({"max_output": -1})),
        python(json!({"background": "yes"})),
        ("run_command", json!({})),
        ("run_command", json!({"command": []})),
        ("run_command", json!({"command": "touch started"})),
        ("run_command", json!({"command": ["touch", "started\u{0}"]})),
        ("run_command", json!({"command": [["touch"]]})),
        (
            "run_command",
            json!({"command": ["touch", "started"], "script": "touch started"}),
        ),
        ("simulate", json!({"language": "python"})),
        ("exec_status", json!({"exec_id": "../tokens"})),
        ("exec_status", json!({"exec_id": ""})),
        ("exec_output", json!({"exec_id": "..", "stream": "stdout"})),
        ("exec_cancel", json!({"exec_id": "ex_\u{0}"})),
        ("effects", json!({"exec_id": "nothing"})),
        ("apply", json!({"exec_id": "nothing"})),
        ("discard", json!({"exec_id": "/v1/tokens"})),
        ("approval_status", json!({"approval_id": "../execs"})),
        ("sandbox_remove", json!({"name": "../../x"})),
        ("snapshot_restore", json!({"snapshot_id": "../../x"})),
        ("fetch", json!({"url": "file:///etc/passwd"})),
        ("fetch", json!({"url": "http://127.0.0.1:1/"})),
        ("fetch", json!({"url": "not an address"})),
        (
            "file_edit",
            json!({"path": "../../etc/hosts", "old": "localhost", "new": "evil"}),
        ),
        (
            "file_move",
            json!({"from": "../../etc/hosts", "to": "hosts"}),
        ),
        ("file_mkdir", json!({"path": "../made"})),
        ("file_remove", json!({"path": "../.."})),
        ("file_search", json!({"pattern": "((", "regex": true})),
    ];
    for path in [
        "../../../../etc/passwd",
        "/etc/passwd",
        "a/../../../../../etc/passwd",
        "a\u{0}b",
        "",
    ] {
        calls.push(("file_read", json!({"path": path})));
        calls.push(("file_write", json!({"path": path, "content": "started"})));
    }
    calls
}
