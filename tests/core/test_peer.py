"""Peer: the callbacks of a call that is cancelled."""

import threading

from answerback.core.peer import NO_PEER, Peer


def test_a_cancellation_calls_every_callback_once_in_the_order_of_registration() -> None:
    called: list[int] = []
    peer = Peer()
    peer.on_cancel(lambda: called.append(1))
    peer.on_cancel(lambda: called.append(2))

    peer.cancel()
    peer.cancel()

    assert peer.cancelled
    assert called == [1, 2]


def test_a_callback_of_a_cancelled_call_is_called_at_once() -> None:
    called: list[int] = []
    peer = Peer()
    peer.cancel()

    peer.on_cancel(lambda: called.append(1))

    assert called == [1]


def test_a_removed_callback_is_not_called_and_the_others_are() -> None:
    called: list[int] = []
    peer = Peer()
    remove = peer.on_cancel(lambda: called.append(1))
    peer.on_cancel(lambda: called.append(2))

    remove()
    peer.cancel()
    remove()

    assert called == [2]


def test_a_callback_that_races_with_the_cancellation_is_called_once() -> None:
    for _ in range(200):
        called: list[int] = []
        peer = Peer()
        start = threading.Barrier(2)

        def add(peer: Peer = peer, start: threading.Barrier = start) -> None:
            start.wait(5)
            for _ in range(20):
                peer.on_cancel(lambda: called.append(1))  # noqa: B023 -- the thread ends first

        adding = threading.Thread(target=add)
        adding.start()
        start.wait(5)
        peer.cancel()
        adding.join(5)

        assert len(called) == 20


def test_the_peer_that_calls_without_a_client_share_keeps_no_callbacks() -> None:
    before = dict(vars(NO_PEER))

    NO_PEER.on_cancel(lambda: None)()

    assert vars(NO_PEER) == before
