//! What names of Python mean.

use crate::signal::*;

use super::Words;
use super::python_library::is_known;

/// By names alone, for programs that cannot be parsed.
pub(super) const WORDS: Words = &[
    ("eval", DYNAMIC_EVALUATION),
    ("exec", DYNAMIC_EVALUATION),
    ("compile", DYNAMIC_EVALUATION),
    ("__import__", DYNAMIC_IMPORT),
    ("importlib", DYNAMIC_IMPORT),
    ("__builtins__", BUILTINS),
    ("builtins", BUILTINS),
    ("getattr", DYNAMIC_ATTRIBUTE),
    ("system", PROCESS_SPAWN),
    ("popen", PROCESS_SPAWN),
    ("Popen", PROCESS_SPAWN),
    ("subprocess", PROCESS_SPAWN),
    ("pty", PROCESS_SPAWN),
    ("check_output", PROCESS_SPAWN),
    ("fork", PROCESS_SPAWN),
    ("execv", PROCESS_SPAWN),
    ("marshal", CODE_OBJECT),
    ("__globals__", SANDBOX_ESCAPE),
    ("__subclasses__", SANDBOX_ESCAPE),
    ("globals", BUILTINS),
    ("os", SYSTEM_MODULE),
    ("sys", SYSTEM_MODULE),
    ("pickle", DESERIALIZATION),
    ("ctypes", NATIVE_CODE),
    ("socket", NETWORK_CLIENT),
    ("requests", NETWORK_CLIENT),
    ("urllib", NETWORK_CLIENT),
    ("shutil", FILE_REMOVE),
    ("write", FILE_WRITE),
    ("open", FILE_WRITE),
    ("kill", PROCESS_KILL),
    ("mount", KERNEL_INTERFACE),
];

/// What a name without an owner means.
pub(super) const BARE: &[(&str, SignalKind)] = &[
    ("eval", DYNAMIC_EVALUATION),
    ("exec", DYNAMIC_EVALUATION),
    ("execfile", DYNAMIC_EVALUATION),
    ("compile", DYNAMIC_EVALUATION),
    ("__import__", DYNAMIC_IMPORT),
    ("reload", DYNAMIC_IMPORT),
    ("__builtins__", BUILTINS),
    ("__loader__", DYNAMIC_IMPORT),
    ("__spec__", DYNAMIC_IMPORT),
];

/// Modules, and what importing them says.
pub(super) const MODULES: &[(&str, SignalKind)] = &[
    ("os", SYSTEM_MODULE),
    ("sys", SYSTEM_MODULE),
    ("posix", PROCESS_SPAWN),
    ("nt", PROCESS_SPAWN),
    ("subprocess", PROCESS_SPAWN),
    ("pty", PROCESS_SPAWN),
    ("pexpect", PROCESS_SPAWN),
    ("sh", PROCESS_SPAWN),
    ("plumbum", PROCESS_SPAWN),
    ("invoke", PROCESS_SPAWN),
    ("fabric", PROCESS_SPAWN),
    ("multiprocessing", SYSTEM_MODULE),
    ("_posixsubprocess", PROCESS_SPAWN),
    ("commands", PROCESS_SPAWN),
    ("ctypes", NATIVE_CODE),
    ("_ctypes", NATIVE_CODE),
    ("cffi", NATIVE_CODE),
    ("mmap", NATIVE_CODE),
    ("pickle", DESERIALIZATION),
    ("cPickle", DESERIALIZATION),
    ("_pickle", DESERIALIZATION),
    ("dill", DESERIALIZATION),
    ("cloudpickle", DESERIALIZATION),
    ("shelve", DESERIALIZATION),
    ("jsonpickle", DESERIALIZATION),
    ("joblib", DESERIALIZATION),
    ("marshal", CODE_OBJECT),
    ("shutil", FILE_SYSTEM),
    ("tempfile", FILE_SYSTEM),
    ("pathlib", FILE_READ),
    ("glob", FILE_READ),
    ("socket", NETWORK_CLIENT),
    ("socketserver", NETWORK_CLIENT),
    ("ssl", NETWORK_CLIENT),
    ("requests", NETWORK_CLIENT),
    ("urllib", NETWORK_CLIENT),
    ("urllib2", NETWORK_CLIENT),
    ("urllib3", NETWORK_CLIENT),
    ("httpx", NETWORK_CLIENT),
    ("aiohttp", NETWORK_CLIENT),
    ("http", NETWORK_CLIENT),
    ("httplib", NETWORK_CLIENT),
    ("ftplib", NETWORK_CLIENT),
    ("smtplib", NETWORK_CLIENT),
    ("telnetlib", NETWORK_CLIENT),
    ("paramiko", NETWORK_CLIENT),
    ("websocket", NETWORK_CLIENT),
    ("websockets", NETWORK_CLIENT),
    ("imaplib", NETWORK_CLIENT),
    ("poplib", NETWORK_CLIENT),
    ("xmlrpc", NETWORK_CLIENT),
    ("scapy", NETWORK_CLIENT),
    ("boto3", NETWORK_CLIENT),
    ("docker", CONTAINER_SOCKET),
    ("importlib", DYNAMIC_IMPORT),
    ("imp", DYNAMIC_IMPORT),
    ("runpy", DYNAMIC_EVALUATION),
    ("code", DYNAMIC_EVALUATION),
    ("codeop", DYNAMIC_EVALUATION),
    ("bdb", DYNAMIC_EVALUATION),
    ("cProfile", DYNAMIC_EVALUATION),
    ("doctest", DYNAMIC_EVALUATION),
    ("pdb", DYNAMIC_EVALUATION),
    ("profile", DYNAMIC_EVALUATION),
    ("rlcompleter", DYNAMIC_EVALUATION),
    ("timeit", DYNAMIC_EVALUATION),
    ("tkinter", DYNAMIC_EVALUATION),
    ("trace", DYNAMIC_EVALUATION),
    ("pipes", PROCESS_SPAWN),
    ("pydoc", PROCESS_SPAWN),
    ("venv", PROCESS_SPAWN),
    ("webbrowser", PROCESS_SPAWN),
    ("builtins", BUILTINS),
    ("__builtin__", BUILTINS),
    ("gc", BUILTINS),
    ("inspect", SYSTEM_MODULE),
    ("types", SYSTEM_MODULE),
    ("signal", SYSTEM_MODULE),
    ("resource", SYSTEM_MODULE),
    ("fcntl", SYSTEM_MODULE),
    ("platform", SANDBOX_PROBE),
    ("pip", PACKAGE_INSTALL),
    ("ensurepip", PACKAGE_INSTALL),
    ("keyring", CREDENTIAL_PATH),
    ("zipimport", DYNAMIC_IMPORT),
    ("pkgutil", DYNAMIC_IMPORT),
];

/// Functions by their path; the longest that fits counts.
pub(super) const PATHS: &[(&str, SignalKind)] = &[
    ("os.system", PROCESS_SPAWN),
    ("os.popen", PROCESS_SPAWN),
    ("os.exec", PROCESS_SPAWN),
    ("os.spawn", PROCESS_SPAWN),
    ("os.posix_spawn", PROCESS_SPAWN),
    ("os.fork", PROCESS_SPAWN),
    ("os.startfile", PROCESS_SPAWN),
    ("asyncio.create_subprocess", PROCESS_SPAWN),
    ("subprocess.", PROCESS_SPAWN),
    ("pty.spawn", PROCESS_SPAWN),
    ("multiprocessing.Process", PROCESS_SPAWN),
    ("os.remove", FILE_REMOVE),
    ("os.unlink", FILE_REMOVE),
    ("os.rmdir", FILE_REMOVE),
    ("os.removedirs", FILE_REMOVE),
    ("os.truncate", FILE_REMOVE),
    ("shutil.rmtree", FILE_REMOVE),
    ("shutil.", FILE_WRITE),
    ("os.rename", FILE_RENAME),
    ("os.replace", FILE_RENAME),
    ("os.write", FILE_WRITE),
    ("os.open", FILE_WRITE),
    ("os.symlink", FILE_WRITE),
    ("os.link", FILE_WRITE),
    ("os.chmod", PERMISSION_CHANGE),
    ("os.chown", PERMISSION_CHANGE),
    ("os.setuid", PRIVILEGE),
    ("os.setgid", PRIVILEGE),
    ("os.seteuid", PRIVILEGE),
    ("os.setresuid", PRIVILEGE),
    ("os.kill", PROCESS_KILL),
    ("os.abort", PROCESS_KILL),
    ("os.environ", ENVIRONMENT_READ),
    ("os.getenv", ENVIRONMENT_READ),
    ("os.putenv", CHANGED_ENVIRONMENT),
    ("os.mount", KERNEL_INTERFACE),
    ("os.unshare", PRIVILEGE),
    ("sys.modules", DYNAMIC_IMPORT),
    ("sys.meta_path", DYNAMIC_IMPORT),
    ("sys.path", SYSTEM_MODULE),
    ("sys._getframe", SANDBOX_ESCAPE),
    ("sys.settrace", SANDBOX_ESCAPE),
    ("importlib.", DYNAMIC_IMPORT),
    ("imp.", DYNAMIC_IMPORT),
    ("runpy.", DYNAMIC_EVALUATION),
    ("types.CodeType", CODE_OBJECT),
    ("types.FunctionType", CODE_OBJECT),
    ("marshal.", CODE_OBJECT),
    ("pickle.", DESERIALIZATION),
    ("cPickle.", DESERIALIZATION),
    ("dill.", DESERIALIZATION),
    ("yaml.load", DESERIALIZATION),
    ("yaml.unsafe_load", DESERIALIZATION),
    ("yaml.full_load", DESERIALIZATION),
    ("torch.load", DESERIALIZATION),
    ("numpy.load", DESERIALIZATION),
    ("shelve.", DESERIALIZATION),
    ("yaml.safe_load", DATA_LOAD),
    ("json.load", DATA_LOAD),
    ("tomllib.load", DATA_LOAD),
    ("csv.", DATA_LOAD),
    ("ctypes.", NATIVE_CODE),
    ("builtins.eval", DYNAMIC_EVALUATION),
    ("builtins.exec", DYNAMIC_EVALUATION),
    ("builtins.compile", DYNAMIC_EVALUATION),
    ("builtins.__import__", DYNAMIC_IMPORT),
    ("builtins.", BUILTINS),
    ("__builtins__.", BUILTINS),
    ("code.Interactive", DYNAMIC_EVALUATION),
    ("socket.", NETWORK_CLIENT),
    ("requests.", NETWORK_CLIENT),
    ("urllib.request", NETWORK_CLIENT),
    ("httpx.", NETWORK_CLIENT),
    ("aiohttp.", NETWORK_CLIENT),
    ("timeit.", DYNAMIC_EVALUATION),
    ("pdb.", DYNAMIC_EVALUATION),
    ("cProfile.run", DYNAMIC_EVALUATION),
    ("doctest.", DYNAMIC_EVALUATION),
    ("pandas.eval", DYNAMIC_EVALUATION),
    ("base64.b64decode", DECODES),
    ("codecs.decode", DECODES),
    ("zlib.decompress", DECODES),
    ("bytes.fromhex", DECODES),
    ("platform.", SANDBOX_PROBE),
    ("os.getppid", SANDBOX_PROBE),
    ("signal.", SYSTEM_MODULE),
    ("logging.config", DYNAMIC_IMPORT),
    ("operator.attrgetter", DYNAMIC_ATTRIBUTE),
    ("operator.methodcaller", DYNAMIC_ATTRIBUTE),
    ("inspect.getattr", DYNAMIC_ATTRIBUTE),
    ("object.__getattribute__", DYNAMIC_ATTRIBUTE),
];

/// Attributes whose owner is not known.
pub(super) const LAST: &[(&str, SignalKind)] = &[
    ("system", PROCESS_SPAWN),
    ("popen", PROCESS_SPAWN),
    ("Popen", PROCESS_SPAWN),
    ("check_output", PROCESS_SPAWN),
    ("check_call", PROCESS_SPAWN),
    ("getoutput", PROCESS_SPAWN),
    ("getstatusoutput", PROCESS_SPAWN),
    ("execv", PROCESS_SPAWN),
    ("execve", PROCESS_SPAWN),
    ("execvp", PROCESS_SPAWN),
    ("execl", PROCESS_SPAWN),
    ("posix_spawn", PROCESS_SPAWN),
    ("rmtree", FILE_REMOVE),
    ("unlink", FILE_REMOVE),
    ("rmdir", FILE_REMOVE),
    ("write", FILE_WRITE),
    ("writelines", FILE_WRITE),
    ("write_text", FILE_WRITE),
    ("write_bytes", FILE_WRITE),
    ("to_csv", FILE_WRITE),
    ("read", FILE_READ),
    ("readlines", FILE_READ),
    ("readline", FILE_READ),
    ("read_text", FILE_READ),
    ("read_bytes", FILE_READ),
    ("extractall", FILE_WRITE),
    ("__subclasses__", SANDBOX_ESCAPE),
    ("__globals__", SANDBOX_ESCAPE),
    ("__mro__", SANDBOX_ESCAPE),
    ("__bases__", SANDBOX_ESCAPE),
    ("__base__", SANDBOX_ESCAPE),
    ("__code__", CODE_OBJECT),
    ("__closure__", SANDBOX_ESCAPE),
    ("__builtins__", BUILTINS),
    ("__import__", DYNAMIC_IMPORT),
    ("__getattribute__", DYNAMIC_ATTRIBUTE),
    ("__loader__", DYNAMIC_IMPORT),
    ("__reduce__", DESERIALIZATION),
    ("f_globals", SANDBOX_ESCAPE),
    ("f_back", SANDBOX_ESCAPE),
    ("gi_frame", SANDBOX_ESCAPE),
    ("tb_frame", SANDBOX_ESCAPE),
    ("func_globals", SANDBOX_ESCAPE),
    ("load_module", DYNAMIC_IMPORT),
    ("import_module", DYNAMIC_IMPORT),
    ("exec_module", DYNAMIC_IMPORT),
];

fn find(table: &[(&str, SignalKind)], name: &str) -> Option<SignalKind> {
    table
        .iter()
        .find(|(it, _)| *it == name)
        .map(|(_, kind)| *kind)
}

/// What a path means, as far as it is known.
pub(super) fn meaning(path: &str) -> Option<SignalKind> {
    if let Some(inner) = kept(path) {
        return meaning(inner).or_else(|| module(inner));
    }
    let path = path
        .strip_prefix("builtins.")
        .filter(|it| find(BARE, it).is_some())
        .unwrap_or(path);
    if let Some(kind) = find(BARE, path) {
        return Some(kind);
    }
    let fits = |it: &&(&str, SignalKind)| path.starts_with(it.0);
    let longest = PATHS.iter().filter(fits).max_by_key(|it| it.0.len());
    if let Some((_, kind)) = longest {
        return Some(*kind);
    }
    if matches!(
        path,
        "sys.stdout.write" | "sys.stderr.write" | "sys.stdin.read" | "sys.stdin.readline"
    ) {
        return None;
    }
    let (_, last) = path.rsplit_once('.')?;
    find(LAST, last)
}

/// What importing it says. A module that nobody knows is code that is not in the request.
pub(super) fn imported(name: &str) -> Option<SignalKind> {
    let first = name.split('.').next().unwrap_or(name);
    module(name).or_else(|| (!is_known(first)).then_some(SCRIPT_FILE))
}

pub(super) fn module(name: &str) -> Option<SignalKind> {
    find(MODULES, name.split('.').next().unwrap_or(name))
}

/// Modules that others keep under their name, or under it with `_` before: `platform.os` is `os`.
const KEPT: [&str; 15] = [
    "builtins",
    "ctypes",
    "imp",
    "importlib",
    "inspect",
    "marshal",
    "os",
    "pickle",
    "posix",
    "pty",
    "runpy",
    "shutil",
    "socket",
    "subprocess",
    "sys",
];

/// The path from the last such module on, behind a module that is known.
fn kept(path: &str) -> Option<&str> {
    let (first, rest) = path.split_once('.')?;
    if module(first).is_none() && !is_known(first) {
        return None;
    }
    let mut found = None;
    let mut left = rest;
    loop {
        let (part, after) = left.split_once('.').unwrap_or((left, ""));
        let plain = part.trim_start_matches('_');
        if KEPT.contains(&plain) {
            found = Some(left.trim_start_matches('_'));
        }
        if after.is_empty() {
            return found;
        }
        left = after;
    }
}
