//! Debian's registry of images, on this machine.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{missing, python, wait_until};

/// What a start may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let registry = Self { child, address };
        let up = wait_until(PATIENCE, || TcpStream::connect(address).is_ok());
        assert!(up, "the registry does not come up");
        Some(registry)
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
