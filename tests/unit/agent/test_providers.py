from pathlib import Path

import pytest

from spottrain.agent import providers


@pytest.mark.parametrize(
    ("provider_id", "provider"),
    [
        ("aws:///eu-west-1a/i-0abc", "aws"),
        ("gce://project/zone/name", "gcp"),
        ("azure:///subscriptions/s", "azure"),
        ("cn-hangzhou.i-bp1", "alibaba"),
        ("alicloud://cn-hangzhou.i-bp1", "alibaba"),
        ("oci://x", "none"),  # known, and without a notice
        ("kind://docker/kind/node", ""),
        ("", ""),
    ],
)
def test_the_provider_id_tells_the_cloud_where_it_can(provider_id: str, provider: str):
    assert providers.by_provider_id(provider_id) == provider


@pytest.mark.parametrize(
    ("vendor", "tag", "provider"),
    [
        ("Amazon EC2", "", "aws"),
        ("Google", "", "gcp"),
        ("Alibaba Cloud", "", "alibaba"),
        ("Microsoft Corporation", "7783-7084-3265-9085-8269-3286-77", "azure"),
        ("Microsoft Corporation", "", ""),  # a Hyper-V of one's own
        ("QEMU", "", ""),
    ],
)
def test_the_firmware_tells_the_cloud_where_it_can(vendor: str, tag: str, provider: str, tmp_path: Path):
    (tmp_path / "sys_vendor").write_text(f"{vendor}\n")
    (tmp_path / "chassis_asset_tag").write_text(f"{tag}\n")

    assert providers.by_firmware(tmp_path) == provider


def test_a_machine_without_firmware_tells_nothing(tmp_path: Path):
    assert providers.by_firmware(tmp_path / "none") == ""
