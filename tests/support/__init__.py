"""The instruments of the test suite: servers to talk to, faults to inject, and judges of what happened.

`s3server` runs a real S3 server for the test run and `proxy` stands in front of it, counting and delaying requests
(`proxy_process` is the process doing so). `faulty_s3` is a strict S3 stand-in that dies, lies and forgets on command:
`s3_objects` knows what S3 answers, `faults` what goes wrong, `http_wire` how both are spoken. `processes` runs code in
children that can be killed and keeps their acknowledgements; `history` judges what the clients saw. `rings` says how
much a run should do, `waiting` waits without sleeping blindly, and `tidy` holds the house rules.
"""
