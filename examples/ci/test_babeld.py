"""babeld on three stations in a row: the outer two meet over the middle one, and lose each other with its link."""


def test_two_hops(mesh):
    chain = mesh.chain(3, routing={"protocol": "babeld", "hello_interval": 1, "update_interval": 4})
    first, middle, last = chain.stations
    route = chain.wait_until(lambda: first.route_to(last), timeout=60)
    assert route.via == middle.address
    first.wait_until_succeeds(["ping", "-c1", "-W1", last], timeout=60)
    assert chain.tcp(first, last, seconds=5).kbps > 100
    chain.break_link(middle, last)
    assert first.ping(last).loss == 1
    chain.wait_until(lambda: first.route_to(last) is None, timeout=90)
    chain.restore_link(middle, last)
    first.wait_until_succeeds(["ping", "-c1", "-W1", last], timeout=90)
