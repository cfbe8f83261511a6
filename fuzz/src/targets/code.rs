//! Python and JavaScript: any bytes give few signals, and no program that cannot be read is safe.

use glovebox_model::Tier;
use glovebox_risk::{Language, catalogue, code_signals};

use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "code",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"eval(",
        b"exec(",
        b"getattr(os, ",
        b"__import__(",
        b"import os as o\n",
        b"from os import *\n",
        b"'a' + 'b'",
        b"''.join([",
        b"chr(115)",
        b"[::-1]",
        b"base64.b64decode('",
        b".format(",
        b"f'{x}'",
        b"\\x41",
        b"\\u0041",
        b"require(",
        b"globalThis[",
        b"`${",
        b"}`",
        b"String.fromCharCode(",
        b".constructor",
        b"=> ",
        b"(",
        b")",
        b"\n",
        b"    ",
        b"lambda: ",
        b"x = ",
        b"const x: any = ",
        b"import {a as b} from '",
    ],
};

fn run(bytes: &[u8]) -> Result<String, String> {
    let mut said = Vec::new();
    for language in [Language::Python, Language::Javascript] {
        let found = code_signals(language, bytes);
        assert!(found.len() <= 64, "{} signals", found.len());
        for signal in &found {
            let kind = catalogue().iter().find(|it| it.name == signal.name);
            assert!(kind.is_some_and(|it| it.tier == signal.tier), "{signal:?}");
            said.push(signal.name.clone());
        }
        if std::str::from_utf8(bytes).is_err() {
            assert!(
                found.iter().any(|it| it.tier >= Tier::High),
                "not read, and no risk"
            );
        }
    }
    Ok(said.join("\n"))
}

fn seeds() -> Vec<Vec<u8>> {
    [
        "import os as o\nf = getattr(o, 'sys' + 'tem')\nf('id')\nwith open('x', 'w') as g:\n    g.write('y')\n",
        "def f(a=eval):\n    return globals()['ev' 'al'](chr(49))\n",
        "const {exec: e} = require('child_' + 'process');\ne(`id ${process.env.X}`);\n",
        "const f: (x: string) => void = globalThis[atob('ZXZhbA==')];\nf('1');\n",
    ]
    .iter()
    .map(|it| it.as_bytes().to_vec())
    .collect()
}
