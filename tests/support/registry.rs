//! Debian's registry of images, on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{missing, python, wait_until};

/// What a start may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of one who takes a connection and says nothing.
const SILENCE: Duration = Duration::from_secs(5);
/// Somebody may take its port before it does.
const ATTEMPTS: usize = 5;

/// Gone when dropped.
#[derive(Debug)]
pub struct Registry {
    child: Child,
    pub address: SocketAddr,
}

impl Registry {
    /// Keeps its images in this directory. `None` where none is installed; in CI that is a failure.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(directory: &Path) -> Option<Self> {
        if Command::new("docker-registry")
            .arg("--version")
            .output()
            .is_err()
        {
            missing("no registry here (`apt-get install docker-registry`)");
            return None;
        }
        let registry = (0..ATTEMPTS).find_map(|_| Self::attempt(directory));
        assert!(registry.is_some(), "the registry does not come up");
        registry
    }

    fn attempt(directory: &Path) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("its address");
        drop(free);
        let config = directory.join("registry.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}'}}\n",
            directory.join("registry").display()
        );
        std::fs::write(&config, text).expect("write its configuration");
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start a registry");
        let mut registry = Self { child, address };
        wait_until(PATIENCE, || registry.answers() || registry.has_ended());
        registry.answers().then_some(registry)
    }

    /// It, and not somebody else who has the port.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address) else {
            return false;
        };
        let mut said = Vec::new();
        let _ = stream.set_read_timeout(Some(SILENCE));
        let _ = stream.write_all(b"GET /v2/ HTTP/1.0\r\n\r\n");
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).to_ascii_lowercase();
        said.contains("docker-distribution-api-version")
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Puts an image there; what it is called for whoever pulls it.
    ///
    /// # Panics
    /// When the registry does not take it.
    pub fn push(&self, name: &str, tag: &str) -> String {
        let output = Command::new(python())
            .args(["-c", include_str!("push.py")])
            .args([&self.address.to_string(), name, tag])
            .output()
            .expect("push an image");
        assert!(output.status.success(), "{output:?}");
        format!("{}/{name}:{tag}", self.address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
