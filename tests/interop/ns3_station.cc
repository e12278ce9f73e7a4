// An ns-3 node as a station of the testbed: ns-3's own IPv4, ARP and routing (DSDV or OLSR), in real time, on the radio
// of a network namespace by a packet socket. Run inside the namespace; the kernel's interface has no address there.
//
//   ns3-station --protocol=dsdv --interface=wlan0 --address=10.0.0.2 --mask=255.0.0.0
//
// Prints `ready`, then ns-3's routing table each --print, until SIGTERM. Built by conftest.py with Debian's libns3-dev.

#include "ns3/core-module.h"
#include "ns3/dsdv-module.h"
#include "ns3/fd-net-device-module.h"
#include "ns3/internet-apps-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/olsr-module.h"

#include <arpa/inet.h>
#include <csignal>
#include <cstring>
#include <iostream>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ns3;

namespace
{

[[noreturn]] void
Fail(const std::string& what)
{
    std::cerr << "ns3-station: " << what << ": " << std::strerror(errno) << std::endl;
    std::exit(1);
}

struct Radio
{
    int socket;
    Mac48Address mac;
    uint16_t mtu;
};

// ns-3's EmuFdNetDeviceHelper does the same by a setuid program that Debian does not ship.
Radio
OpenRadio(const std::string& name)
{
    const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    if (fd < 0)
    {
        Fail("packet socket");
    }
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
    if (address.sll_ifindex == 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    {
        Fail(name);
    }
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    if (ioctl(fd, SIOCGIFHWADDR, &request) < 0)
    {
        Fail(name + ": hardware address");
    }
    Mac48Address mac;
    mac.CopyFrom(reinterpret_cast<const uint8_t*>(request.ifr_hwaddr.sa_data));
    if (ioctl(fd, SIOCGIFMTU, &request) < 0)
    {
        Fail(name + ": MTU");
    }
    return {fd, mac, static_cast<uint16_t>(request.ifr_mtu)};
}

// Blocks that begin with "Node: ", rows that begin with destination and next hop.
void
PrintRoutes(Ptr<Node> node, Time every)
{
    Ptr<Ipv4RoutingProtocol> routing = node->GetObject<Ipv4>()->GetRoutingProtocol();
    if (auto olsr = DynamicCast<olsr::RoutingProtocol>(routing))
    {
        // its own print tears addresses apart (ns-3.37)
        std::cout << "Node: " << Simulator::Now().As(Time::S) << "\n";
        for (const auto& entry : olsr->GetRoutingTableEntries())
        {
            std::cout << entry.destAddr << "\t" << entry.nextAddr << "\t" << entry.distance << "\n";
        }
    }
    else
    {
        routing->PrintRoutingTable(Create<OutputStreamWrapper>(&std::cout));
    }
    std::cout << std::flush;
    Simulator::Schedule(every, &PrintRoutes, node, every);
}

volatile std::sig_atomic_t g_ended = 0;

void
OnSignal(int)
{
    g_ended = 1;
}

// A signal handler may not call the simulator.
void
Watch()
{
    if (g_ended)
    {
        Simulator::Stop();
    }
    Simulator::Schedule(MilliSeconds(100), &Watch);
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string protocol = "dsdv";
    std::string interface = "wlan0";
    std::string address;
    std::string mask = "255.0.0.0";
    std::string ping;
    Time print = Seconds(5);
    CommandLine cmd;
    cmd.AddValue("protocol", "dsdv or olsr", protocol);
    cmd.AddValue("interface", "the radio", interface);
    cmd.AddValue("address", "the station's address", address);
    cmd.AddValue("mask", "the network's mask", mask);
    cmd.AddValue("ping", "an address to send an ICMP echo request to each second", ping);
    cmd.AddValue("print", "how often the routing table is printed", print);
    cmd.Parse(argc, argv);

    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));

    const Radio radio = OpenRadio(interface);
    Ptr<Node> node = CreateObject<Node>();
    Ptr<FdNetDevice> device = CreateObject<FdNetDevice>();
    device->SetAddress(radio.mac);
    device->SetFileDescriptor(radio.socket);
    device->SetEncapsulationMode(FdNetDevice::DIX);
    device->SetMtu(radio.mtu);
    node->AddDevice(device);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    if (protocol == "dsdv")
    {
        stack.SetRoutingHelper(DsdvHelper());
    }
    else if (protocol == "olsr")
    {
        stack.SetRoutingHelper(OlsrHelper());
    }
    else
    {
        errno = EINVAL;
        Fail(protocol);
    }
    stack.Install(node);
    Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
    const uint32_t index = ipv4->AddInterface(device);
    ipv4->AddAddress(index, Ipv4InterfaceAddress(Ipv4Address(address.c_str()), Ipv4Mask(mask.c_str())));
    ipv4->SetMetric(index, 1);
    ipv4->SetUp(index);

    std::signal(SIGTERM, OnSignal);
    std::signal(SIGINT, OnSignal);
    std::cout << "ready" << std::endl;
    Simulator::Schedule(print, &PrintRoutes, node, print);
    if (!ping.empty())
    {
        V4PingHelper pinger{Ipv4Address(ping.c_str())};
        pinger.SetAttribute("Verbose", BooleanValue(true));
        pinger.Install(node).Start(Seconds(0));
    }
    Simulator::Schedule(MilliSeconds(100), &Watch);
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
