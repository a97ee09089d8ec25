"""`Packet` in the protobuf runtime, as the oracle of our codec."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet, PacketType

FOLDER = Path(__file__).parents[2] / "tunnel"


def load_packet_class() -> Any:
    with TemporaryDirectory() as folder:
        compiled = Path(folder) / "packet.pb"
        source = FOLDER / "konnectivity.proto"
        assert protoc.main(["protoc", f"-I{FOLDER}", f"--descriptor_set_out={compiled}", str(source)]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Packet"))


RuntimePacket = load_packet_class()


def to_runtime(packet: Packet) -> Any:
    """The same packet, built by the protobuf runtime."""
    made = RuntimePacket(type=int(packets.type_of(packet)))
    match packet:
        case packets.DialRequest(protocol, address, random):
            made.dialRequest.protocol, made.dialRequest.address, made.dialRequest.random = protocol, address, random
        case packets.DialResponse(error, connect_id, random):
            made.dialResponse.error, made.dialResponse.connectID, made.dialResponse.random = error, connect_id, random
        case packets.CloseRequest(connect_id):
            made.closeRequest.connectID = connect_id
        case packets.CloseResponse(error, connect_id):
            made.closeResponse.error, made.closeResponse.connectID = error, connect_id
        case packets.Data(connect_id, error, data):
            made.data.connectID, made.data.error, made.data.data = connect_id, error, data
        case packets.CloseDial(random):
            made.closeDial.random = random
        case packets.Drain() | packets.Credit() | packets.ServersRequest() | packets.ServersResponse():
            pass  # DRAIN holds nothing, and the runtime does not know what goes beyond Konnectivity
    getattr(made, MEMBERS[packets.type_of(packet)]).SetInParent()
    return made


MEMBERS = {
    PacketType.DIAL_REQ: "dialRequest",
    PacketType.DIAL_RSP: "dialResponse",
    PacketType.CLOSE_REQ: "closeRequest",
    PacketType.CLOSE_RSP: "closeResponse",
    PacketType.DATA: "data",
    PacketType.DIAL_CLS: "closeDial",
    PacketType.DRAIN: "drain",
}
