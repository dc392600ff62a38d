use super::*;

#[tokio::test]
async fn work_that_stops_without_a_word_is_not_taken_for_done() {
    let prefetch = Prefetch::new(|outlet: Outlet<u8>| async move {
        outlet.put(1).await;
        panic!("a fault");
    });
    assert_eq!(prefetch.next().await, Ok(Some(1)));
    let error = prefetch.next().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Aborted);
    assert_eq!(prefetch.next().await, Ok(None));
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let (go, gate) = tokio::sync::oneshot::channel::<()>();
    let prefetch = Prefetch::new(|outlet: Outlet<u64>| async move {
        let _ = gate.await;
        outlet.put(7).await;
        Ok(())
    });
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(1), prefetch.next()).await;
    assert!(dropped.is_err());
    go.send(()).unwrap();
    assert_eq!(prefetch.next().await, Ok(Some(7)));
    assert_eq!(prefetch.next().await, Ok(None));
}

/// Sums up numbers, three at a time.
#[derive(Default)]
struct Threes(Vec<u64>);

impl Gather<u64> for Threes {
    type Gathered = u64;

    fn take(&mut self, item: u64) -> Result<(), Error> {
        self.0.push(item);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= 3
    }

    fn finish(&mut self) -> Result<u64, Error> {
        Ok(self.0.drain(..).sum())
    }
}

#[tokio::test]
async fn what_was_gathered_before_an_error_comes_before_it() {
    let numbers = Prefetch::new(|outlet: Outlet<u64>| async move {
        for number in 1..=5 {
            outlet.put(number).await;
        }
        Err(Error::new(ErrorKind::Aborted))
    });
    let sums = gathered(numbers, Threes::default(), None);
    assert_eq!(sums.next().await, Ok(Some(6)));
    assert_eq!(sums.next().await, Ok(Some(9)));
    assert_eq!(sums.next().await.unwrap_err().kind, ErrorKind::Aborted);
    assert_eq!(sums.next().await, Ok(None));
}

#[tokio::test]
async fn what_was_gathered_is_passed_on_once_it_is_old() {
    let numbers = Prefetch::new(|outlet: Outlet<u64>| async move {
        outlet.put(7).await;
        std::future::pending::<Result<(), Error>>().await
    });
    let age = Some(std::time::Duration::from_millis(1));
    let sums = gathered(numbers, Threes::default(), age);
    assert_eq!(sums.next().await, Ok(Some(7)));
}
