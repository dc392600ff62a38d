use super::*;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test(start_paused = true)]
async fn pages_wait_until_earlier_ones_are_read() {
    let room = Room::default();
    let soon = Duration::from_secs(1);
    let first = room.take(ROOM as usize - 1).await;
    let second = room.take(1).await;
    assert!(timeout(soon, room.take(1)).await.is_err());
    drop(first);
    assert!(timeout(soon, room.take(1)).await.is_ok());
    drop(second);
    assert!(timeout(soon, room.take(usize::MAX)).await.is_ok());
}
