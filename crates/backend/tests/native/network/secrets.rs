//! What a run is given, and who else finds it.

use glovebox_backend::{
    Cancel, Ending, Kept, KeptNative, Run, Secret, SecretFiles, SecretForm, Spec,
};
use glovebox_model::{Code, Profile, Result, SecretName};

use crate::house::{Both, Rooms, Told, Yard, order, profile, unbound};
use crate::network::ground::{networked, open, see, spec};

const CANARY: &[u8] = b"canary-7d1f\0\xff\n";

fn name(name: &str) -> SecretName {
    name.parse().unwrap()
}

fn secret<'run>(name: &'run SecretName, value: &'run [u8], form: SecretForm) -> Secret<'run> {
    Secret { name, value, form }
}

pub(crate) fn files_are_read_by_their_run_alone() {
    let yard = Yard::new();
    let profile = networked();
    let (token, empty, large) = (name("token"), name("empty"), name("Large_1.pem"));
    let bulk = vec![b'k'; 300_000];
    let secrets = [
        secret(&token, CANARY, SecretForm::File),
        secret(&empty, b"", SecretForm::File),
        secret(&large, &bulk, SecretForm::File),
    ];
    let code = r#"
import errno, os
os.chdir("/run/secrets")
print(sorted(os.listdir(".")), open("token", "rb").read(), len(open("empty").read()))
print(set(open("Large_1.pem").read()), os.path.getsize("Large_1.pem"))
for path in (".", "token"):
    facts = os.stat(path)
    print(oct(facts.st_mode), facts.st_uid, facts.st_gid)
def attempt(act):
    try:
        act()
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
attempt(lambda: open("token", "w"))
attempt(lambda: open("more", "w"))
attempt(lambda: os.unlink("token"))
attempt(lambda: os.rename("token", "/tmp/token"))
attempt(lambda: os.chmod("token", 0o644))
attempt(lambda: os.rmdir("/run/secrets"))
attempt(lambda: os.link("token", "/tmp/token"))
print([line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if " /run/secrets " in line])
"#;
    let told = see(open(&yard, &profile), &profile, code, &secrets).unwrap();
    let expected = "['Large_1.pem', 'empty', 'token'] b'canary-7d1f\\x00\\xff\\n' 0
{'k'} 300000
0o40700 1000 1000
0o100400 1000 1000
EROFS
EROFS
EROFS
EXDEV
EROFS
EBUSY
EXDEV
['ramfs']
";
    let (said, expected): (Vec<&str>, Vec<&str>) =
        (told.stdout.lines().collect(), expected.lines().collect());
    // Which of two refusals comes first is the kernel's to say.
    for (at, (said, expected)) in said.iter().zip(&expected).enumerate() {
        assert!(
            said == expected || ((4..11).contains(&at) && *said != "done"),
            "{told:?}"
        );
    }
    assert_eq!(said.len(), expected.len(), "{told:?}");
}

pub(crate) fn descriptors_come_in_order() {
    let yard = Yard::new();
    let profile = networked();
    let names: Vec<SecretName> = (0..12).map(|it| name(&format!("s{it}"))).collect();
    let values: Vec<String> = (0..12).map(|it| format!("value {it}")).collect();
    let pairs = names.iter().zip(&values);
    let mut secrets: Vec<Secret<'_>> = pairs
        .map(|(name, value)| secret(name, value.as_bytes(), SecretForm::Descriptor))
        .collect();
    let file = name("file");
    secrets.insert(1, secret(&file, b"of a file", SecretForm::File));
    let code = r#"
import errno, os
print([os.read(number, 100).decode() for number in range(3, 15)])
print([number for number in range(15, 64) if os.path.exists(f"/proc/self/fd/{number}") and number != 15])
for act in (lambda: os.write(3, b"x"), lambda: os.ftruncate(3, 0), lambda: os.ftruncate(3, 99)):
    try:
        act()
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
print(open("/run/secrets/file").read(), os.listdir("/run/secrets"))
"#;
    let told = see(open(&yard, &profile), &profile, code, &secrets).unwrap();
    let listed: Vec<String> = values.iter().map(|it| format!("'{it}'")).collect();
    let expected = format!(
        "[{}]\n[]\nEPERM\nEPERM\nEPERM\nof a file ['file']\n",
        listed.join(", ")
    );
    assert_eq!(told.stdout, expected, "{told:?}");
    // A thirteenth is too much, and nothing runs without it.
    let more = name("more");
    secrets.push(secret(&more, b"", SecretForm::Descriptor));
    let error = see(open(&yard, &profile), &profile, "print(1)", &secrets).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

pub(crate) fn they_are_in_no_other_place() {
    let yard = Yard::new();
    let profile = networked();
    let (file, descriptor) = (name("file"), name("descriptor"));
    let secrets = [
        secret(&file, b"canary-in-file", SecretForm::File),
        secret(&descriptor, b"canary-in-descriptor", SecretForm::Descriptor),
    ];
    // Everything that can be read, but for the two places where they belong.
    let code = r#"
import os
os.close(3)
mark = b"canary" + b"-in"
for top, directories, files in os.walk("/"):
    if top == "/":
        directories[:] = [it for it in directories if it not in ("usr", "sys")]
    if top == "/run/secrets" or top.startswith("/proc/") and "/task" in top:
        continue
    for file in files:
        path = os.path.join(top, file)
        if path.endswith(("/mem", "/pagemap", "/kmsg", "/clear_refs")) or path.startswith("/dev/"):
            continue
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as it:
                if mark in (it.read(1 << 20) or b""):
                    print(path)
        except OSError:
            pass
print("looked")
"#;
    let told = see(open(&yard, &profile), &profile, code, &secrets).unwrap();
    assert_eq!(told.stdout, "looked\n", "{told:?}");
    let text = format!("{secrets:?} {told:?}");
    assert!(!text.contains("canary"), "{text}");
}

pub(crate) fn a_sandbox_without_a_place_for_them_refuses() {
    let yard = Yard::new();
    let profile = profile();
    let bare = Spec {
        secrets: SecretFiles::Never,
        ..spec(&profile)
    };
    let prepared = yard.native().open(&bare, &yard.house.state()).unwrap();
    let token = name("token");
    let secrets = [secret(&token, CANARY, SecretForm::File)];
    let error = see(prepared, &profile, "print(1)", &secrets).unwrap_err();
    assert_eq!(error.code, Code::SetupFailed, "{error:?}");
    let large = vec![0; (1 << 20) + 1];
    let secrets = [secret(&token, &large, SecretForm::File)];
    let error = see(open(&yard, &profile), &profile, "print(1)", &secrets).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error:?}");
    // Two of one name are somebody's mistake.
    let secrets = [secret(&token, b"1", SecretForm::File); 2];
    let error = see(open(&yard, &profile), &profile, "print(1)", &secrets).unwrap_err();
    assert_eq!(error.code, Code::SetupFailed, "{error:?}");
}

fn run(
    kept: &mut KeptNative,
    rooms: &Rooms,
    profile: &Profile,
    code: &str,
    secrets: &[Secret<'_>],
) -> Result<Told> {
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut both = Both::default();
    let run = Run {
        order: &order(&["python3", "-c", code], &[]),
        profile,
        watched: &[],
        stdin: None,
        terminal: None,
        secrets,
        sink: &mut both,
        cancel: &cancel,
        control: None,
    };
    let ended = kept.run(rooms.room(), run)?;
    Ok(both.told(ended))
}

fn keep(yard: &Yard, profile: &Profile) -> KeptNative {
    let spec = Spec {
        secrets: SecretFiles::PerRun,
        ..unbound(profile)
    };
    yard.native().keep(&spec, &yard.house.state()).unwrap()
}

const LIST: &str = "import os; print(sorted(os.listdir('/run/secrets')), \
                    [it for it in range(3, 20) if os.path.exists(f'/proc/self/fd/{it}')])";

pub(crate) fn the_next_run_finds_nothing_of_them() {
    let yard = Yard::new();
    let profile = profile();
    let mut kept = keep(&yard, &profile);
    let rooms = Rooms::new(&yard.house, "a");
    let (first, second) = (name("first"), name("second"));
    let secrets = [
        secret(&first, CANARY, SecretForm::File),
        secret(&second, CANARY, SecretForm::Descriptor),
    ];
    // Whoever holds one open is gone before the next begins.
    let hold = "import os, time\nos.set_inheritable(3, True)\nf = open('/run/secrets/first')\n\
                os.set_inheritable(f.fileno(), True)\n\
                if os.fork() == 0:\n os.setsid(); time.sleep(600)\nprint(os.listdir('/run/secrets'))";
    let told = run(&mut kept, &rooms, &profile, hold, &secrets).unwrap();
    assert_eq!(told.stdout, "['first']\n", "{told:?}");
    let told = run(&mut kept, &rooms, &profile, LIST, &[]).unwrap();
    assert_eq!(told.stdout, "[] []\n", "{told:?}");
    // One that never started had them in vain.
    let error = {
        let (cancel, _canceler) = Cancel::new().unwrap();
        let run = Run {
            order: &order(&["/absent"], &[]),
            profile: &profile,
            watched: &[],
            stdin: None,
            terminal: None,
            secrets: &secrets[..1],
            sink: &mut Both::default(),
            cancel: &cancel,
            control: None,
        };
        kept.run(rooms.room(), run).unwrap_err()
    };
    assert_eq!(error.code, Code::CommandNotFound);
    let told = run(&mut kept, &rooms, &profile, LIST, &[]).unwrap();
    assert_eq!(told.stdout, "[] []\n", "{told:?}");
    let again = [secret(&second, CANARY, SecretForm::File)];
    let told = run(&mut kept, &rooms, &profile, LIST, &again).unwrap();
    assert_eq!(told.stdout, "['second'] []\n", "{told:?}");
    drop(Box::new(kept).close());
}

pub(crate) fn one_that_was_killed_leaves_none() {
    let yard = Yard::new();
    let mut short = profile();
    short.limits.wall_ms = glovebox_model::Millis(300);
    let long = profile();
    let mut kept = keep(&yard, &long);
    let rooms = Rooms::new(&yard.house, "a");
    let token = name("token");
    let secrets = [secret(&token, CANARY, SecretForm::File)];
    let stay = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                while True: signal.pause()";
    let told = run(&mut kept, &rooms, &short, stay, &secrets).unwrap();
    assert_eq!(told.ended.ending, Ending::TimedOut, "{told:?}");
    let told = run(&mut kept, &rooms, &long, LIST, &[]).unwrap();
    assert_eq!(told.stdout, "[] []\n", "{told:?}");
    drop(Box::new(kept).close());
}
