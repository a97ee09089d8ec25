from garboard.rpc.keepalive import Keepalive, KeepaliveAction, KeepaliveConfig

CONFIG = KeepaliveConfig(time_s=30, timeout_s=20)


def test_silent_peer_is_asked_then_given_up() -> None:
    keepalive = Keepalive(CONFIG, now=0)
    assert keepalive.decide(10, has_calls=True) == (KeepaliveAction.WAIT, 30)
    assert keepalive.decide(30, has_calls=True) == (KeepaliveAction.PING, 50)
    assert keepalive.decide(40, has_calls=True) == (KeepaliveAction.WAIT, 50)
    assert keepalive.decide(50, has_calls=True)[0] is KeepaliveAction.GIVE_UP


def test_any_byte_proves_that_the_peer_lives() -> None:
    keepalive = Keepalive(CONFIG, now=0)
    keepalive.decide(30, has_calls=True)
    keepalive.heard(45)
    assert keepalive.decide(50, has_calls=True) == (KeepaliveAction.WAIT, 75)


def test_idle_connection_is_left_alone_when_asked_to() -> None:
    keepalive = Keepalive(KeepaliveConfig(time_s=30, without_calls=False), now=0)
    assert keepalive.decide(100, has_calls=False) == (KeepaliveAction.WAIT, 130)
    assert keepalive.decide(130, has_calls=True)[0] is KeepaliveAction.PING


def test_peer_that_complains_is_asked_half_as_often() -> None:
    keepalive = Keepalive(CONFIG, now=0)
    keepalive.slow_down()
    assert keepalive.decide(30, has_calls=True) == (KeepaliveAction.WAIT, 60)


def test_doubt_asks_at_once_and_only_once() -> None:
    keepalive = Keepalive(KeepaliveConfig(time_s=3600, timeout_s=20), now=0)
    assert keepalive.ask(5)
    assert not keepalive.ask(6)
    assert keepalive.decide(24, has_calls=True) == (KeepaliveAction.WAIT, 25)
    assert keepalive.decide(25, has_calls=True)[0] is KeepaliveAction.GIVE_UP
    keepalive.heard(25)
    assert keepalive.decide(26, has_calls=True) == (KeepaliveAction.WAIT, 3625)
