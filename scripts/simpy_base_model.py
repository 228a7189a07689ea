#!/usr/bin/env python3
"""The base model of `kavg bench sim` in SimPy, for a comparison in the same minute.

96 threads with one I/O each and no think time; the guest lets 64 out, the device queue 32, and 32
servers take an exponential 0.5 ms. Any server takes any I/O, so by the operational laws this is
64,000 IOPS at 1.5 ms. What is compared is the time that one simulated I/O costs.

    pip install simpy
    python3 scripts/simpy_base_model.py
"""

import random
import sys
import time

import simpy

THREADS, GUEST_LIMIT, DEVICE_LIMIT, SERVERS = 96, 64, 32, 32
SERVICE_S = 0.0005


def thread(env, guest, device, servers, done):
    while True:
        submitted = env.now
        with guest.request() as guest_slot:
            yield guest_slot
            with device.request() as device_slot:
                yield device_slot
                with servers.request() as server:
                    yield server
                    yield env.timeout(random.expovariate(1 / SERVICE_S))
        done[0] += 1
        done[1] += env.now - submitted


def main():
    virtual_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    random.seed(1)
    env = simpy.Environment()
    stations = [simpy.Resource(env, limit) for limit in (GUEST_LIMIT, DEVICE_LIMIT, SERVERS)]
    done = [0, 0.0]
    for _ in range(THREADS):
        env.process(thread(env, *stations, done))
    start = time.perf_counter()
    env.run(until=virtual_s)
    wall_s = time.perf_counter() - start
    ios, latency_s = done
    print(f"SimPy {simpy.__version__}, Python {sys.version.split()[0]}")
    print(f"model: {ios / virtual_s:,.0f} IOPS, {latency_s / ios * 1e3:.3f} ms")
    print(f"speed: {ios / wall_s:,.0f} simulated I/Os per second")


if __name__ == "__main__":
    main()
