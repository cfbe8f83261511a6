//! Signals of Python, JavaScript and TypeScript, by hand.

use glovebox_model::Tier::{self, *};
use glovebox_risk::{Language, catalogue, code_signals};

use super::tier;

type Row = (&'static str, Tier, &'static str);

const PYTHON: &[Row] = &[
    ("print(1 + 2)", Safe, ""),
    ("def f(x):\n    return x * 2\nprint(f(3))", Safe, ""),
    ("import math, json\nprint(json.dumps({}))", Safe, ""),
    ("import re\nre.compile('x')", Safe, ""),
    ("x = [1, 2][::-1]", Safe, ""),
    ("self.__class__.__name__", Safe, ""),
    // A module of somebody's own is code that is not in the request.
    ("import x", Low, "script_file"),
    ("from pkg.x import y", Low, "script_file"),
    ("from . import y", Low, "script_file"),
    ("import numpy as np\nprint(np.sum([1]))", Safe, ""),
    // What others keep under its name is still that.
    (
        "import platform\nplatform.os.system('x')",
        Critical,
        "process_spawn",
    ),
    (
        "import random\nrandom._os.system('x')",
        Critical,
        "process_spawn",
    ),
    (
        "from shlex import os as o\no.popen('x')",
        Critical,
        "process_spawn",
    ),
    (
        "import json\njson.codecs.builtins",
        Critical,
        "builtins_access",
    ),
    ("import platform\nplatform.sys", High, "system_module"),
    ("args.os", Safe, ""),
    ("import bdb", Critical, "dynamic_evaluation"),
    // 4(b), critical.
    ("eval('1')", Critical, "dynamic_evaluation"),
    ("exec(x)", Critical, "dynamic_evaluation"),
    ("compile(x, '', 'exec')", Critical, "dynamic_evaluation"),
    ("__import__('x')", Critical, "dynamic_import"),
    ("import importlib", Critical, "dynamic_import"),
    ("import builtins", Critical, "builtins_access"),
    ("__builtins__", Critical, "builtins_access"),
    ("getattr(x, '__class__')", Critical, "dynamic_attribute"),
    ("os.system('x')", Critical, "process_spawn"),
    ("import subprocess", Critical, "process_spawn"),
    ("os.popen('x')", Critical, "process_spawn"),
    (
        "import subprocess as s\ns.run(['x'])",
        Critical,
        "process_spawn",
    ),
    // 4(b), high.
    ("open('x', 'w')", High, "file_write"),
    ("f.write('x')", High, "file_write"),
    ("import shutil", High, "file_system"),
    ("shutil.copy(a, b)", High, "file_write"),
    ("import requests", High, "network_client"),
    ("import urllib.request", High, "network_client"),
    ("import socket", High, "network_client"),
    ("import os", High, "system_module"),
    ("import sys", High, "system_module"),
    ("import pickle", High, "deserialization"),
    ("import ctypes", High, "native_code"),
    ("open('x', mode='a')", High, "file_write"),
    ("open('x', m)", High, "file_write"),
    // 4(b), medium.
    ("open('x')", Medium, "file_read"),
    ("f.read()", Medium, "file_read"),
    ("json.load(f)", Medium, "data_load"),
    ("os.environ['x']", Medium, "environment_read"),
    // Aliases.
    ("import os as o\no.system('x')", Critical, "process_spawn"),
    (
        "from os import system as s\ns('x')",
        Critical,
        "process_spawn",
    ),
    ("from os import *\nsystem('x')", Critical, "process_spawn"),
    ("f = eval\nf('1')", Critical, "dynamic_evaluation"),
    ("a, b = print, exec", Critical, "dynamic_evaluation"),
    ("(y := eval)('1')", Critical, "dynamic_evaluation"),
    ("for f in [eval]: f(1)", Critical, "dynamic_evaluation"),
    (
        "import os\nm = os\nm.system('x')",
        Critical,
        "process_spawn",
    ),
    (
        "def f():\n    o.system('x')\nimport os as o",
        Critical,
        "process_spawn",
    ),
    ("def f(m): m.system('x')", Critical, "process_spawn"),
    // Names in pieces.
    ("getattr(os, 'sys' + 'tem')('x')", Critical, "built_name"),
    ("getattr(os, 'metsys'[::-1])", Critical, "process_spawn"),
    (
        "getattr(os, ''.join(['sys', 'tem']))",
        Critical,
        "process_spawn",
    ),
    ("getattr(os, chr(115) + 'ystem')", Critical, "process_spawn"),
    (
        "getattr(os, 'sys{}'.format('tem'))",
        Critical,
        "process_spawn",
    ),
    ("getattr(os, f\"sys{'tem'}\")", Critical, "process_spawn"),
    ("getattr(os, '%stem' % 'sys')", Critical, "process_spawn"),
    (
        "getattr(os, bytes.fromhex('73797374656d').decode())",
        Critical,
        "process_spawn",
    ),
    (
        "import base64\ngetattr(os, base64.b64decode('c3lzdGVt').decode())",
        Critical,
        "process_spawn",
    ),
    (
        "import codecs\ngetattr(os, codecs.decode('flfgrz', 'rot13'))",
        Critical,
        "process_spawn",
    ),
    ("getattr(os, '\\x73ystem')", Critical, "process_spawn"),
    (
        "getattr(os, ''.join(map(chr, [115, 121, 115, 116, 101, 109])))",
        Critical,
        "process_spawn",
    ),
    ("n = 'system'\ngetattr(os, n)", Critical, "process_spawn"),
    ("getattr(os, x)", Critical, "dynamic_attribute"),
    (
        "__import__('o' + 's').system('x')",
        Critical,
        "process_spawn",
    ),
    (
        "globals()['ev' + 'al']('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "__builtins__.__dict__['exec']",
        Critical,
        "dynamic_evaluation",
    ),
    ("globals()[x]", Critical, "dynamic_attribute"),
    ("vars(os)['system']", Critical, ""),
    (
        "import sys\nsys.modules['os'].system('x')",
        Critical,
        "process_spawn",
    ),
    ("x = 'ev' + 'al'", High, "built_name"),
    ("ｅｖａｌ('1')", Critical, "built_name"),
    (
        "().__class__.__bases__[0].__subclasses__()",
        Critical,
        "constructor_escape",
    ),
    // Others.
    (
        "import base64\nexec(base64.b64decode('cHJpbnQoMSk='))",
        Critical,
        "encoded_program",
    ),
    ("import marshal", Critical, "code_object"),
    ("import pty\npty.spawn('sh')", Critical, "process_spawn"),
    ("yaml.load(x)", High, "deserialization"),
    ("pickle.loads(x)", High, "deserialization"),
    ("open('/etc/shadow')", High, "credential_path"),
    ("open('/et' + 'c/shadow')", High, "credential_path"),
    ("p = '~/.ssh/id_rsa'", High, "credential_path"),
    ("p = '/var/run/docker.sock'", Critical, "container_socket"),
    ("os.kill(1, 9)", High, "process_kill"),
    ("os.setuid(0)", High, "privilege"),
    ("shutil.rmtree('/')", Critical, "destroys_root"),
    ("os.remove('x')", High, "file_remove"),
    ("x = (", High, "unreadable"),
    ("eval(x) )(", Critical, "unreadable"),
    ("# eval exec os.system", Safe, ""),
    ("print('eval')", Safe, ""),
];

const JAVASCRIPT: &[Row] = &[
    ("console.log(1)", Safe, ""),
    ("const a = [1]; a[i] = 2; export {}", Safe, ""),
    ("const x: number = 1;\ninterface A { b: string }", Safe, ""),
    ("const p = require('path')", Safe, ""),
    ("require('./x')", Low, "script_file"),
    ("import x from '../x.js'", Low, "script_file"),
    ("require('node:util')", Safe, ""),
    // 4(b).
    ("eval('1')", Critical, "dynamic_evaluation"),
    ("new Function('x')()", Critical, "dynamic_evaluation"),
    ("require('child_process')", Critical, "process_spawn"),
    (
        "import {exec} from 'child_process'",
        Critical,
        "process_spawn",
    ),
    ("require('fs')", High, "file_system"),
    ("import * as f from 'node:fs'", High, "file_system"),
    ("require('http')", High, "network_client"),
    ("require('https').get('x')", High, "network_client"),
    ("fetch('x')", High, "network_client"),
    // Aliases and pieces.
    ("globalThis['ev' + 'al']('1')", Critical, "built_name"),
    ("window[`ev${'al'}`]('1')", Critical, "dynamic_evaluation"),
    ("(0, eval)('1')", Critical, "dynamic_evaluation"),
    ("const e = eval; e('1')", Critical, "dynamic_evaluation"),
    ("Function('x')()", Critical, "dynamic_evaluation"),
    ("require('child_' + 'process')", Critical, "built_name"),
    (
        "const m = 'child_process'; require(m)",
        Critical,
        "process_spawn",
    ),
    ("require(x)", Critical, "dynamic_import"),
    ("import(x)", Critical, "dynamic_import"),
    ("const r = require; r('fs')", Critical, "dynamic_import"),
    ("process.binding('fs')", Critical, "process_binding"),
    ("process['bin' + 'ding']('x')", Critical, "process_binding"),
    ("process[x]", Critical, "dynamic_attribute"),
    (
        "[].constructor.constructor('x')()",
        Critical,
        "constructor_escape",
    ),
    (
        "''['constructor']['constructor']('x')",
        Critical,
        "constructor_escape",
    ),
    (
        "(function(){}).constructor('x')",
        Critical,
        "constructor_escape",
    ),
    ("e\\u0076al('1')", Critical, "built_name"),
    ("ev\\u{61}l('1')", Critical, "dynamic_evaluation"),
    (
        "globalThis['\\x65val']('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "globalThis[atob('ZXZhbA==')]('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "globalThis[String.fromCharCode(101,118,97,108)]('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "globalThis['lave'.split('').reverse().join('')]('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "globalThis[['ev','al'].join('')]('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "globalThis[Buffer.from('6576616c', 'hex').toString()]('1')",
        Critical,
        "dynamic_evaluation",
    ),
    ("globalThis[x]('1')", Critical, "dynamic_attribute"),
    (
        "const {exec: e} = require('child_process'); e('x')",
        Critical,
        "process_spawn",
    ),
    (
        "const {eval: e} = globalThis; e('1')",
        Critical,
        "dynamic_evaluation",
    ),
    ("setTimeout('x', 1)", Critical, "dynamic_evaluation"),
    ("setTimeout(() => 1, 1)", Safe, ""),
    (
        "Reflect.get(globalThis, 'eval')('1')",
        Critical,
        "dynamic_evaluation",
    ),
    ("eval.call(null, '1')", Critical, "dynamic_evaluation"),
    ("eval(atob('MQ=='))", Critical, "encoded_program"),
    ("process.env.X", Medium, "environment_read"),
    (
        "require('vm').runInThisContext('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "process.mainModule.require('child_process')",
        Critical,
        "process_spawn",
    ),
    ("import('fs')", High, "file_system"),
    (
        "const x: any = eval;\nx('1')",
        Critical,
        "dynamic_evaluation",
    ),
    (
        "require('fs').readFileSync('/root/.ssh/id_rsa')",
        High,
        "credential_path",
    ),
    ("const x = (", High, "unreadable"),
    ("eval('1') ) (", Critical, "unreadable"),
    ("// eval", Safe, ""),
    ("const s = 'eval'", Safe, ""),
];

fn check(language: Language, rows: &[Row]) {
    let mut wrong = Vec::new();
    for (code, expected, name) in rows {
        let found = code_signals(language, code.as_bytes());
        let named = name.is_empty() || found.iter().any(|it| it.name == *name);
        if tier(&found) != *expected || !named {
            let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
            wrong.push(format!(
                "{code:?}: {} {names:?}, want {expected} {name}",
                tier(&found)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn python_has_the_tier_that_was_written_by_hand() {
    check(Language::Python, PYTHON);
}

#[test]
fn javascript_has_the_tier_that_was_written_by_hand() {
    check(Language::Javascript, JAVASCRIPT);
}

#[test]
fn code_that_is_no_text_or_too_long_is_not_safe() {
    for language in [Language::Shell, Language::Python, Language::Javascript] {
        assert!(
            tier(&code_signals(language, b"\xff\xfe x")) >= High,
            "{language:?}"
        );
        let long = "x\n".repeat(200 * 1024);
        assert!(
            tier(&code_signals(language, long.as_bytes())) >= High,
            "{language:?}"
        );
        let deep = "(".repeat(100_000);
        assert!(
            tier(&code_signals(language, deep.as_bytes())) >= High,
            "{language:?}"
        );
        let wide = format!("x = {}1", "a + ".repeat(50_000));
        code_signals(language, wide.as_bytes());
        let calls = format!(
            "{}x{}",
            "getattr(a, ".repeat(20_000),
            ").lower()".repeat(20_000)
        );
        code_signals(language, calls.as_bytes());
    }
}

#[test]
fn the_catalogue_has_one_line_for_each_name() {
    let mut names: Vec<_> = catalogue().iter().map(|it| it.name).collect();
    let snake = |it: &&str| it.bytes().all(|it| it == b'_' || it.is_ascii_lowercase());
    assert!(names.iter().all(snake));
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
