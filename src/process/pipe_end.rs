//! Whether a process has closed its end of a pipe that a launcher before it holds open as well, so that no end of the
//! file ever comes.

use std::os::fd::AsFd;
use std::time::Duration;

/// How often somebody looks. Whoever closes it does nothing good afterwards, but nothing urgent either.
const LOOK: Duration = Duration::from_secs(1);

/// The other end of a pipe, in another process.
#[derive(Debug, Clone, Copy)]
pub struct PipeEnd {
    inode: u64,
}

impl PipeEnd {
    /// The other end of this pipe; `None` where the system does not tell.
    pub fn beyond(pipe: &impl AsFd) -> Option<Self> {
        rustix::fs::fstat(pipe).ok().map(|stat| Self { inode: stat.st_ino })
    }

    /// Waits until a process holds it no more; for ever, where the system does not tell.
    pub async fn closed_by(self, pid: u32) {
        let mut known = None;
        loop {
            tokio::time::sleep(LOOK).await;
            // Where it was the last time it most likely still is.
            if known.is_some_and(|number| self.is_at(pid, number)) {
                continue;
            }
            match self.find(pid) {
                Some(number) => known = number,
                None => return,
            }
        }
    }

    fn is_at(self, pid: u32, number: u32) -> bool {
        let place = std::fs::read_link(format!("/proc/{pid}/fd/{number}"));
        place.is_ok_and(|place| place.as_os_str() == self.name().as_str())
    }

    /// Which of a process's descriptors it is: `None` for none of them, `Some(None)` where nobody can tell.
    #[expect(clippy::option_option, reason = "found, gone and unknown are three things")]
    fn find(self, pid: u32) -> Option<Option<u32>> {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Some(None) };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.into_iter().find(|number| self.is_at(pid, *number)).map(Some)
    }

    fn name(self) -> String {
        format!("pipe:[{}]", self.inode)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_that_was_closed_is_seen_though_the_pipe_is_open() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let kept = writer.try_clone().unwrap();
        let end = PipeEnd::beyond(&reader).unwrap();
        let pid = std::process::id();
        let waits = tokio::time::timeout(LOOK * 3, end.closed_by(pid)).await;
        assert!(waits.is_err(), "it is held");
        drop((reader, writer));
        let waits = tokio::time::timeout(LOOK * 3, end.closed_by(pid)).await;
        assert!(waits.is_err(), "it is held by a second descriptor");
        drop(kept);
        end.closed_by(pid).await;
        tokio::time::timeout(LOOK * 3, end.closed_by(u32::MAX))
            .await
            .expect_err("of a process that is gone others tell");
    }
}
